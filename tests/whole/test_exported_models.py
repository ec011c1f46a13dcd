"""A model trained here runs elsewhere: the same text in transformers and llama.cpp, the same figure in lm-eval."""

import importlib.util
import json
import subprocess
import sys

import pytest

import pellucid

pytestmark = pytest.mark.real
PROMPT = "The value of"
TASK = """
task: my_text
dataset_path: json
dataset_kwargs: {data_files: {test: text.jsonl}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list:
  - {metric: bits_per_byte}
"""
TEXTS = (
    "The value of the expression is assigned to the name on the left.",
    "A class: naïve café.\n\nYes.",
)


def call(*words, cwd):
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of a minute and both its exports."""
    folder = tmp_path_factory.mktemp("exported")
    sizes = ["--vocab-size", "1024", "--model.num-layers", "2", "--model.d-model", "64", "--model.num-heads", "4"]
    call("-m", "pellucid", "train", "--steps", "150", *sizes, "--out", "run", cwd=folder)
    call("-m", "pellucid", "export", "run", "--out", "hf", cwd=folder)
    call("-m", "pellucid", "export", "run", "--format", "gguf", "--out", "run.gguf", cwd=folder)
    return folder


def ours(folder, tokens=40):
    writing = pellucid.load(folder / "run").complete([PROMPT], temperature=0.0, max_tokens=tokens, raw=True)
    return writing[0].token_ids


def test_transformers_writes_what_we_write(folder):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "hf")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf")
    ids = tokenizer(PROMPT, return_tensors="pt")
    wrote = model.generate(**ids, max_new_tokens=40, do_sample=False)[0, ids["input_ids"].shape[1] :].tolist()
    assert wrote[: len(ours(folder))] == ours(folder)


def test_llama_cpp_writes_what_we_write(folder):
    llama_cpp = pytest.importorskip("llama_cpp")
    exact = {"type_k": llama_cpp.GGML_TYPE_F32, "type_v": llama_cpp.GGML_TYPE_F32}
    model = llama_cpp.Llama(str(folder / "run.gguf"), n_ctx=128, verbose=False, **exact)
    tokens = model.generate(model.tokenize(PROMPT.encode()), temp=0.0, repeat_penalty=1.0)
    expected = ours(folder)
    assert [token for token, _ in zip(tokens, expected, strict=False)] == expected


def test_lm_eval_has_the_figure_that_evaluate_has(folder):
    if importlib.util.find_spec("lm_eval") is None:
        pytest.skip("lm_eval is not installed")
    (folder / "my_text.yaml").write_text(TASK)
    (folder / "text.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    how = ["--model", "hf", "--model_args", "pretrained=hf,dtype=float32", "--device", "cpu", "--include_path", "."]
    call("-m", "lm_eval", *how, "--tasks", "my_text", "--output_path", "figures", cwd=folder)
    (figures,) = (folder / "figures").rglob("results*.json")
    theirs = json.loads(figures.read_text())["results"]["my_text"]["bits_per_byte,none"]
    said = json.loads(call("-m", "pellucid", "evaluate", "hf", "text.jsonl", "--json", cwd=folder))
    assert theirs == pytest.approx(said["together"]["bits_per_byte"], rel=1e-5)
