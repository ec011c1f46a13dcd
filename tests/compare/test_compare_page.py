import re

from pellucid.compare import compare
from pellucid.compare.compare_page import comparison_page
from tests.compare.made_runs import made_run


def page_of(folder, name="other"):
    runs = [made_run(folder / f"base-seed-{seed}", seed=seed) for seed in (0, 1)]
    runs += [made_run(folder / f"{name}-seed-{seed}", seed=seed, model={"norm": "none"}) for seed in (0, 1)]
    return comparison_page(compare(runs))


def test_the_page_has_the_verdict_four_curves_and_the_distance(tmp_path):
    page = page_of(tmp_path)
    assert "cannot be told apart" in page
    assert [f">{axis}</text>" in page for axis in ("steps", "tokens", "FLOPs", "seconds")] == [True] * 4
    assert page.count("<figure>") == 5
    assert "model.norm" in page


def test_it_names_no_address_and_no_name_is_markup(tmp_path):
    page = page_of(tmp_path, "<script>alert(1)<")
    assert "<script" not in page
    assert not re.search(r"https?://", page)


def test_runs_without_readings_make_a_page_too(tmp_path):
    comparison = compare([made_run(tmp_path / name, seed=n, events=[]) for n, name in enumerate(("a", "b"))])
    assert "None of the runs has a held-out score." in comparison_page(comparison)


def test_without_a_seed_in_common_no_empty_chart_is_drawn(tmp_path):
    runs = [made_run(tmp_path / "base"), made_run(tmp_path / "other", seed=1, model={"norm": "none"})]
    page = comparison_page(compare(runs))
    assert page.count("<figure>") == 4
    assert "no distance to draw" in page
