"""Module health over a run, and the modules that left the others."""

from pellucid.report.health import MOST_LINES, health
from tests.report.invented_run import invented_record


def _look(step: int, layers: int = 2, **changes) -> dict:
    modules = {"token_embedding": {"weight": 1.0, "update_ratio": 0.01, "activation": 1.0}}
    for layer in range(layers):
        modules |= {
            f"blocks.{layer}": {"activation": 1.5 + layer},
            f"blocks.{layer}.attention": {"activation": 0.5, "entropy": 1.0, "entropy_ceiling": 4.0},
            f"blocks.{layer}.attention.query_key_value": {"weight": 0.1, "gradient": 1e-4, "update_ratio": 0.02},
            f"blocks.{layer}.attention_norm": {"weight": 1.0, "activation": None},
        }
    return {"event": "ModuleHealth", "step": step, "modules": modules | changes, "seconds": 0.1}


def test_streams_entropies_and_updates_are_drawn_and_every_module_is_listed(tmp_path):
    shown = health(invented_record(tmp_path / "run", _look(10), _look(20)))
    assert shown.count("<svg") == 3
    for words in ("after block 2", "layer 1", "token embedding", "Every module after step 20", "1.00 of 4.00 nats"):
        assert words in shown
    assert "No module&#x27;s numbers left those of its kind." in shown


def test_a_module_that_left_the_others_is_named(tmp_path):
    told = {"event": "Noticed", "step": 20, "kind": "module", "sentence": "blocks.1.feed_forward.up grows <b>"}
    shown = health(invented_record(tmp_path / "run", _look(10), told))
    assert "blocks.1.feed_forward.up grows &lt;b&gt;" in shown
    assert "No module" not in shown


def test_of_many_layers_as_many_are_drawn_as_have_colours(tmp_path):
    shown = health(invented_record(tmp_path / "run", _look(10, layers=40), _look(20, layers=40)))
    assert shown.count("after block ") == MOST_LINES
    assert "after block 1<" in shown
    assert "after block 40<" in shown


def test_numbers_that_are_not_there_are_gaps(tmp_path):
    shown = health(invented_record(tmp_path / "run", _look(10, token_embedding="?"), {"event": "ModuleHealth"}))
    assert "nan" not in shown


def test_a_name_is_text(tmp_path):
    assert "<script>" not in health(invented_record(tmp_path / "run", _look(10, **{"<script>": {"weight": 1.0}})))


def test_a_run_that_was_not_looked_at_has_no_such_part(record):
    record.others.pop("ModuleHealth", None)
    assert health(record) == ""
