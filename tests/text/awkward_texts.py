"""Texts that tokenizers lose something of."""

# Field note D14, and neighbours: what a tokenizer loses when it normalises, trims, or thinks in ASCII.
AWKWARD = [
    *(" " * count for count in range(1, 65)),
    *(f"a{' ' * count}b" for count in (1, 2, 3, 64)),
    " leading",
    "trailing   ",
    "\t\ttabs\t",
    "\r",
    "mac\rline",
    "dos\r\nlines\r\n",
    "mixed\r\n\r\r\n\n\r",
    "\n\n\n",
    "a\n\n\nb",
    "no\xa0break\u202fspace",
    "nul\x00inside\x00",
    "\x1c\x1d\x1e\x1f \x85",
    "line\u2028separator\u2029",
    "\ufeffmark at the start",
    "mark in the\ufeffmiddle",
    "\u00e9 and e\u0301",  # one letter, NFC and NFD
    "\u0301\u0308 lone marks",
    "👨\u200d👩\u200d👧\u200d👦 family 🏳️\u200d🌈 👍🏽",
    "zero\u200bwidth\u200cand\u200djoiners",
    "\u202eright to left\u202c",
    "می‌خواهم 中文，標點。 ภาษาไทย 한국어 हिन्दी",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010ffff \U000e0041",
    "don't we'll I've they're 'S it's'll ''s",
    "x = 1234567 + 0x1F; // ²³¼ ⅷ ٣",
    "<|endoftext|>",
    "a<|endoftext|><|endoftext|> b",
    "",
]
