"""The axis legend: the only list of axis names that a shape annotation may use.

An annotation such as ``Float[Tensor, "*batch query d_head"]`` is a sentence made of these words. Every test run
executes the annotations, so a shape that is written here and in a signature is also true.

In: nothing.  Out: `AXES`.  Used by: every annotation, and the test that reads them.  Read next: model_config.py.
"""

AXES: dict[str, str] = {
    "batch": "independent sequences side by side; `*batch` is any number of leading axes",
    "position": "tokens along a sequence",
    "query": "positions that look (rows of an attention map)",
    "key": "positions that are looked at (columns of an attention map)",
    "head": "query heads",
    "kv_head": "key and value heads; a divisor of head (grouped-query attention)",
    "group": "query heads that share one key and value head: head / kv_head",
    "d_model": "width of the residual stream",
    "d_head": "width of one head's queries and keys",
    "d_value": "width of one head's values (equal to d_head in the model)",
    "d_ff": "inner width of the feed-forward part",
    "d_in": "features a linear map takes",
    "d_out": "features a linear map gives",
    "rank": "features between two low-rank factors",
    "vocab": "token ids",
    "layer": "blocks, from the input upwards",
    "capacity": "positions a key-value cache has room for",
    "frequency": "pairs of features that a rotary embedding turns together: d_head / 2",
    "row": "rows of a training batch, or of a matrix whose meaning is its caller's",
    "column": "columns of a matrix whose meaning is its caller's",
}
