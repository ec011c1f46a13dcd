import dataclasses
import itertools
import json
import math
import random

import pytest

from pellucid.train.events import Evaluated, ModuleHealth, Noticed, StepDone
from pellucid.train.watcher import PATIENCE, Watcher, watched


def step_done(step, bits=2.0, norm=0.5, skipped=False):
    return StepDone(
        step=step,
        steps=1000,
        bits_per_character=bits,
        train=bits,
        gradient_norm=norm,
        learning_rates={},
        epoch=0.0,
        tokens_per_second=1.0,
        seconds_left=1.0,
        skipped=skipped,
    )


def evaluated(step, held_out, train, is_best=False, steps=1000):
    halves = {"standard_error": 0.1, "held_out_even": held_out, "held_out_odd": held_out}
    return Evaluated(step=step, steps=steps, train=train, held_out=held_out, is_best=is_best, seconds=1.0, **halves)


def look(step, *gradients):
    modules = {f"blocks.{i}.attention.output": {"gradient": gradient} for i, gradient in enumerate(gradients)}
    return ModuleHealth(step=step, modules=modules, seconds=0.0)


def noise(step, seed=0):
    return random.Random(f"{seed} {step}").gauss(0, 0.05)


def steps(count, changes=None, first=1):
    """Ordinary steps, and at some of them another loss."""
    changes = changes or {}
    return [step_done(step, changes.get(step, 2.0 + noise(step))) for step in range(first, first + count)]


def said(events, watcher=None):
    watcher = watcher or Watcher()
    return [noticed for event in events for noticed in watcher(event)]


def as_lines(events):
    """What metrics.jsonl holds: NaN becomes null."""
    return [
        {name: None if value != value else value for name, value in json.loads(json.dumps(event.as_json())).items()}
        for event in events
    ]


# --- the loss


def test_a_spike_is_told_when_it_happens_and_when_it_is_over():
    spike = {200: 3.2, 201: 3.9, 202: 3.5, 203: 2.9, 204: 2.4}
    begun, over = said(steps(300, spike))
    assert (begun.kind, begun.step) == ("loss spike", 200)
    assert begun.sentence.startswith("Loss spike at step 200: 3.20 bits per character instead of about 2.0")
    assert over.step in (205, 206, 207)
    assert over.sentence.startswith("The loss is back at ")


def test_two_high_steps_in_a_row_are_a_spike_and_one_is_a_hard_batch():
    assert said(steps(300, {200: 2.6})) == []
    begun, *_ = said(steps(300, {200: 2.6, 201: 2.6}))
    assert begun.step == 201
    assert "at step 200:" in begun.sentence


def test_a_loss_that_does_not_come_back_is_told_with_where_the_good_model_is():
    events = steps(200) + [step_done(step, 4.0 + noise(step)) for step in range(201, 500)]
    begun, given_up = said(events)
    assert begun.step == 201
    assert given_up.step == 201 + PATIENCE
    assert "has not come back 64 steps after the spike at step 201: 4.0" in given_up.sentence
    assert "model.safetensors holds the best step" in given_up.sentence


def test_many_spikes_are_told_ever_more_rarely():
    spikes = {step + i: 4.0 for step in range(100, 1000, 50) for i in range(3)}
    begun = [noticed.sentence for noticed in said(steps(1000, spikes)) if noticed.sentence.startswith("Loss spike")]
    assert len(begun) == 5
    assert begun[-1].endswith("It is spike number 16: lower learning rates make fewer.")


def test_a_loss_that_falls_and_one_that_is_nearly_0_are_no_spikes():
    assert said(step_done(step, 6 / step**0.3 + noise(step)) for step in range(1, 800)) == []
    assert said(step_done(step, 0.01 + 0.02 * (step % 17 == 0)) for step in range(1, 800)) == []


def test_skipped_steps_are_told_the_first_and_the_tenth_and_are_no_spikes():
    events = [step_done(step, math.nan if step % 10 == 0 else 2.0, skipped=step % 10 == 0) for step in range(1, 300)]
    first, tenth = said(events)
    assert first.sentence == "Step 10 was skipped: its loss was nan bits per character, its gradient norm 0.5."
    assert (tenth.kind, tenth.step) == ("skipped step", 100)
    assert "skipped, the 10th of this run: " in tenth.sentence


def test_of_a_skipped_step_it_is_said_where_its_numbers_went_bad():
    event = dataclasses.replace(step_done(7, math.inf, skipped=True), not_finite="the first was the output of lm_head")
    assert said([event])[0].sentence.endswith("gradient norm 0.5; the first was the output of lm_head.")


# --- gradients


def test_gradients_that_have_grown_are_told_and_again_when_they_have_doubled():
    events = [step_done(step, norm=0.5 * math.exp(max(0, step - 300) / 60)) for step in range(1, 500)]
    told = said(events)
    assert {noticed.kind for noticed in told} == {"gradient norm"}
    assert 1 <= len(told) <= 3
    assert "times its usual 0.5" in told[0].sentence
    ratios = [noticed.value / noticed.usual for noticed in told]
    assert all(later >= 2 * before for before, later in itertools.pairwise(ratios))


def test_gradients_that_double_over_a_run_are_usual():
    assert said(step_done(step, norm=0.4 + step / 1000) for step in range(1, 1000)) == []


# --- the held-out loss


def test_learning_by_heart_is_told_once_with_the_best_step_and_what_to_do():
    events = [
        evaluated(100, 5.0, 5.3, is_best=True),
        evaluated(200, 4.66, 3.8, is_best=True),
        evaluated(300, 4.80, 3.2),
        evaluated(400, 4.90, 2.9),
    ]
    (told,) = said(events)
    assert (told.kind, told.step, told.value, told.usual) == ("overfitting", 300, 4.80, 4.66)
    for words in ("since step 200", "from 4.660 to 4.800", "from 3.80 to 3.20", "model.safetensors holds step 200"):
        assert words in told.sentence


def test_a_small_rise_counts_when_it_lasts():
    best = evaluated(100, 2.0, 1.9, is_best=True)
    assert said([best, evaluated(200, 2.012, 1.85)]) == []
    assert len(said([best, evaluated(200, 2.012, 1.85), evaluated(300, 2.022, 1.8)])) == 1
    assert said([best, evaluated(200, 2.022, 1.85), evaluated(300, 1.99, 1.8, is_best=True)]) == []


def test_a_held_out_loss_that_rises_with_the_train_loss_is_another_thing():
    assert said([evaluated(100, 2.0, 1.9, is_best=True), evaluated(200, 2.5, 2.4)]) == []


def test_a_held_out_loss_that_goes_up_and_down_before_anything_is_learned_is_noise():
    assert said([evaluated(60, 3.89, 4.24, is_best=True), evaluated(90, 4.0, 4.05)]) == []
    assert said([evaluated(180, 3.86, 3.89, is_best=True), evaluated(210, 3.95, 3.85)]) == []


def test_at_the_last_step_nobody_is_told_to_stop():
    events = [evaluated(900, 3.0, 2.0, is_best=True), evaluated(1000, 3.1, 1.5)]
    assert said(events)[0].sentence.endswith("or more dropout (--model.dropout).")
    assert said([events[0], dataclasses.replace(events[1], step=950)])[0].sentence.endswith("(Ctrl-C).")


def test_after_a_new_best_it_may_be_told_again():
    first = [evaluated(100, 2.0, 1.9, is_best=True), evaluated(200, 2.1, 1.7)]
    second = [evaluated(300, 1.9, 1.6, is_best=True), evaluated(400, 2.0, 1.4)]
    assert [noticed.step for noticed in said(first + second)] == [200, 400]


def test_where_nothing_is_held_out_nothing_is_said():
    assert said([evaluated(step, None, 2.0, is_best=True) for step in range(100, 1000, 100)]) == []


def test_a_standstill_is_told_once_and_not_near_the_end():
    still = [evaluated(step, 2.31 + step / 1e6, 2.29, is_best=step == 100) for step in range(100, 1001, 100)]
    (told,) = said(still)
    assert (told.kind, told.step) == ("standstill", 400)
    assert "Nothing has moved for 300 steps" in told.sentence
    assert said([evaluated(step, 3.0 - step / 1000, 2.0) for step in range(100, 700, 100)] + still[6:]) == []


# --- modules


def test_a_module_that_leaves_its_kind_is_told_once():
    events = [look(100, 1, 1, 2, 1), look(200, 1, 1, 30, 1), look(300, 1, 1, 300, 1)]
    (told,) = said(events)
    assert told.sentence == (
        "Step 200, blocks.2.attention.output: gradients 30 times those of the other blocks, and growing."
    )


def test_the_farthest_module_is_named_and_the_others_counted():
    before, now = look(100, 1, 1, 1, 1, 1, 1), look(200, 1, 20, 1, None, 1, 1)
    (told,) = said([before, now])
    assert "blocks.3.attention.output: gradients that are not finite; 1 more stand out" in told.sentence


# --- all of it


def everything():
    spikes = {step + i: 4.0 for step in range(150, 900, 120) for i in range(4)}
    events = []
    for event in steps(1000, spikes):
        events.append(event)
        if event.step % 100 == 0:
            events.append(evaluated(event.step, 2.0 + event.step / 3000, 2.0 - event.step / 2000, event.step == 100))
            events.append(look(event.step, 1, 1, event.step**2 / 1e4, 1))
    return events


@pytest.mark.parametrize("cut", [1, 37, 151, 152, 155, 500, 800])
def test_a_run_that_goes_on_says_what_it_would_have_said(cut):
    events = everything()
    straight, begun = said(events), said(events[:cut])
    again = Watcher()
    again.replay(as_lines(events[:cut]))
    assert begun + said(events[cut:], again) == straight
    assert len(straight) >= 8


def test_lines_of_other_events_and_of_older_versions_are_no_trouble():
    lines = [{"event": "TextRead"}, {}, {"event": "StepDone", "step": 1}, {"event": "Evaluated", "step": 2, "new": 1}]
    Watcher().replay(lines)


def test_a_watched_observer_hears_what_there_is_to_say_after_its_event():
    heard = []
    observe = watched(heard.append, Watcher())
    for event in steps(201, {200: 4.0, 201: 4.0}):
        observe(event)
    assert isinstance(heard[-2], Noticed) or isinstance(heard[-1], Noticed)
    at = next(i for i, event in enumerate(heard) if isinstance(event, Noticed))
    assert heard[at - 1].step == heard[at].step
