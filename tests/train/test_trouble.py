from pathlib import Path

from pellucid.train.trouble import beyond_repair


def test_what_was_seen_and_what_is_left_is_said_in_a_sentence():
    said = str(
        beyond_repair("a loss of nan after step 7", {"matrices": 0.0412, "head": 0.003}, Path("run/step-000005"))
    )
    assert said.startswith("Expected losses and gradients that are finite, but got a loss of nan after step 7")
    assert "(learning rates: matrices 0.0412, head 0.003)" in said
    assert said.endswith("the last good checkpoint is run/step-000005.")


def test_the_first_module_that_went_bad_is_in_the_sentence():
    error = beyond_repair("a loss of nan after step 7", {"matrices": 0.02}, None, "the first was lm_head")
    assert "nan after step 7 (learning rates: matrices 0.02); the first was lm_head: lower" in str(error)
