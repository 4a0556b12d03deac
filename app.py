"""The server: an ASGI app around pages/shell.py."""

import streamlit as st

app = st.App("pages/shell.py")
