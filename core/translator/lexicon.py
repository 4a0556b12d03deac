"""The words of the small bilingual grammar, English beside Chinese.

>>> NOUNS["mouse"].plural, NOUNS["mouse"].zh, NOUNS["mouse"].measure
('mice', '老鼠', '只')
"""

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun: English singular and plural, Chinese word, Chinese measure word."""

    one: str
    plural: str
    zh: str
    measure: str


class Verb(NamedTuple):
    """A verb: English base, third person and past, Chinese word."""

    base: str
    third: str
    past: str
    zh: str


def _nouns(lines: str) -> tuple[Noun, ...]:
    return tuple(Noun(*line.split()) for line in lines.strip().splitlines())


def _verbs(lines: str) -> tuple[Verb, ...]:
    return tuple(Verb(*line.split()) for line in lines.strip().splitlines())


ANIMALS = _nouns("""
cat cats 猫 只
dog dogs 狗 只
mouse mice 老鼠 只
bird birds 鸟 只
rabbit rabbits 兔子 只
horse horses 马 匹
cow cows 牛 头
snake snakes 蛇 条
duck ducks 鸭子 只
""")
PEOPLE = _nouns("""
girl girls 女孩 个
boy boys 男孩 个
child children 孩子 个
teacher teachers 老师 位
doctor doctors 医生 位
friend friends 朋友 个
""")
THINGS = _nouns("""
book books 书 本
letter letters 信 封
apple apples 苹果 个
flower flowers 花 朵
hat hats 帽子 顶
key keys 钥匙 把
chair chairs 椅子 把
boat boats 船 条
""")
RIVERSIDE, MONEYED = (  # whose company alone decides what "bank" means
    _nouns("fisherman fishermen 渔夫 个"),
    _nouns("banker bankers 银行家 位\nclerk clerks 职员 个"),
)
HUMANS = (*PEOPLE, *RIVERSIDE, *MONEYED)
BEINGS = (*ANIMALS, *HUMANS)
PLACES = _nouns("""
mat mats 垫子 张
table tables 桌子 张
bed beds 床 张
house houses 房子 座
garden gardens 花园 个
box boxes 盒子 个
tree trees 树 棵
""")
WHERE = {  # English preposition: the Chinese word after the place, and places it goes with
    "on": ("上", ("mat", "table", "bed", "chair", "boat")),
    "in": ("里", ("house", "garden", "box", "boat")),
    "under": ("下", ("tree", "table", "bed", "chair")),
    "behind": ("后面", ("tree", "house", "box", "garden")),
}
NOUNS = {noun.one: noun for noun in (*ANIMALS, *PEOPLE, *THINGS, *RIVERSIDE, *MONEYED, *PLACES)}

ON_BEINGS = _verbs("""
chase chases chased 追
see sees saw 看见
bite bites bit 咬
help helps helped 帮助
call calls called 叫
""")
ON_THINGS = _verbs("""
buy buys bought 买
sell sells sold 卖
draw draws drew 画
lose loses lost 丢
""")
POSTURES = _verbs("""
sit sits sat 坐
stand stands stood 站
sleep sleeps slept 睡
""")  # the place follows the verb: 坐在垫子上
DOINGS = _verbs("""
play plays played 玩
wait waits waited 等
sing sings sang 唱歌
""")  # the place comes before the verb: 在花园里玩
LIKES = (Verb("like", "likes", "liked", "喜欢"), Verb("love", "loves", "loved", "爱"))
FITTING = (  # (verb, things it is done with)
    (Verb("eat", "eats", "ate", "吃"), ("apple",)),
    (Verb("write", "writes", "wrote", "写"), ("letter", "book")),
)
HAVE = Verb("have", "has", "had", "有")
OPEN = Verb("open", "opens", "opened", "开")
WORK = Verb("work", "works", "worked", "工作")
AT_RIVER = (  # (verb, object, its Chinese word): done where a river flows
    (Verb("catch", "catches", "caught", "钓"), "fish", "鱼"),
    (Verb("plant", "plants", "planted", "种"), "trees", "树"),
    (Verb("plant", "plants", "planted", "种"), "flowers", "花"),
)
AT_COUNTER = (
    (Verb("save", "saves", "saved", "存"), "money", "钱"),
    (Verb("borrow", "borrows", "borrowed", "借"), "money", "钱"),
)

AGES = (("big", "大"), ("small", "小"), ("old", "老"))
COLOURS = (*AGES, ("black", "黑"), ("white", "白"))
LOOKS = (("big", "大"), ("small", "小"), ("new", "新"), ("red", "红"))
STATES = (("old", "老"), ("happy", "高兴"), ("hungry", "饿"), ("tired", "累"), ("small", "小"))
STEEP, RICH = (("steep", "陡"), ("green", "绿")), (("rich", "有钱"), ("busy", "忙"))
NUMBERS = (("two", "两"), ("three", "三"), ("four", "四"), ("five", "五"))
SUBJECTS = (("i", "我"), ("you", "你"), ("he", "他"), ("she", "她"), ("we", "我们"),
            ("they", "他们"))  # fmt: skip
OBJECTS = (("me", "我"), ("you", "你"), ("him", "他"), ("her", "她"), ("us", "我们"),
           ("them", "他们"))  # fmt: skip
OWNERS = (("my", "我的"), ("your", "你的"), ("his", "他的"), ("her", "她的"), ("our", "我们的"))
TIMES = {
    "past": (("yesterday", "昨天"), ("last night", "昨晚")),
    "present": (("today", "今天"), ("now", "现在"), ("every day", "每天")),
    "future": (("tomorrow", "明天"), ("tonight", "今晚")),
}
