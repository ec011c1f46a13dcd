"""How good a run has become: first in words, then in figures, then beside the best table; and what would help.

Nothing is claimed that lies within the standard error, and every sentence must be true however the run ended, completed
or stopped, better or worse than a table of letters, better and better or only until it knew the text by heart.

In: a `Finished`.  Out: sentences.  Used by: the command line, the report.  Read next: ../report/.
"""

import math

from pellucid.train.events import Finished

BY_HEART = 0.3  # bits between train and held out: 0.33 at 18 readings of 1 MB, where time no longer helps (docs/log.md)
LEAST_XZ = 0.1  # bits a character: of a text that only repeats itself, a share of xz says nothing
MOST_UNSEEN = 0.1  # of the held-out characters: with more that the training text never has, figures say nothing
WITH_ROOM = 0.1  # bits: a model that does as well on new text as on old is not large enough to learn it by heart
MEMORABLE = 2  # readings: before, what it "read" was as new to it, and a gap says that some passages are harder
RECITED = 50  # characters: ten words in a row are hardly written twice by chance
LONGER = 3  # times the minutes, where more time is what helps


def verdict(event: Finished) -> list[str]:
    """How good it is: a line in words, and one of figures; or that nobody can tell."""
    if event.held_out is None:
        return [f"Everything was for training: how good it is on other text, nobody can tell{_train(event)}."]
    if not event.yardsticks:
        return [of_answers(event), *filter(None, [kept_step(event)]), *filter(None, [since_before(event)])]
    unseen, characters = event.yardsticks["unseen"], sum(event.yardsticks["held_out_characters"])
    if unseen > MOST_UNSEEN * characters:
        return [
            f"Too short to be tested: {unseen:,} of the {characters:,} held-out characters never stand in the text that"
            " was learned from, so no figure says anything; more text would help."
        ]
    figures = in_figures(event), against_the_table(event), kept_step(event)
    return [in_words(event), " ".join(filter(None, figures)), *filter(None, [since_before(event)])]


def of_answers(event: Finished) -> str:
    """The held-out loss of chats: of the assistant's answers alone, the tokens that end them among them."""
    assert event.held_out is not None
    error = "" if event.standard_error is None else f" ± {event.standard_error:.3f}"
    tokens = event.held_out_tokens or 1
    nats = event.held_out * event.held_out_characters * math.log(2) / tokens
    return (
        f"On answers it never read: {event.held_out:.3f}{error} bits per character, {nats:.3f} nats per token"
        f" ({tokens:,} tokens); after step {event.best_step:,}. No letter table and no xz can answer: what to beat is"
        " the model before."
    )


def since_before(event: Finished) -> str:
    """Whether the run has made the model that it began with any better."""
    if event.before is None:
        return ""
    error = event.gain_error or 0.0
    figure = f"{abs(event.gain):.3f}" + ("" if event.gain_error is None else f" ± {error:.3f}")
    was = f"Before training it was {event.before:.3f}"
    if abs(event.gain) <= error:
        return f"{was}: no better and no worse, the difference of {figure} bits is within its error."
    if event.gain > 0:
        return f"{was}: the run made it better by {figure} bits."
    return f"{was}: the run made it worse by {figure} bits; lower learning rates, or more text like this, would help."


def _train(event: Finished) -> str:
    return "" if event.train is None else f"; on what it read, {event.train:.3f} bits per character"


def in_words(event: Finished) -> str:
    """The held-out loss as a number of letters."""
    assert event.held_out is not None
    table = event.yardsticks["best_ngram"]
    return (
        f"On passages it never read, it hesitates between {letters(event.held_out)} letters a time"
        f" (chance {letters(event.yardsticks['chance'])}, the best letter table {letters(table)})."
    )


def letters(bits: float) -> str:
    """Among how many equally likely letters a guess of so many bits chooses.

    Example:
        >>> letters(1.87), letters(6.27)
        ('3.7', '77')
    """
    number = 2 ** min(bits, 1000.0)  # a loss that has run away still has a figure
    return f"{number:.1f}" if number < 10 else f"{number:,.0f}" if number < 1e6 else f"{number:.0e}"


def in_figures(event: Finished) -> str:
    """The held-out loss in bits, with its error, and how it was scored."""
    assert event.held_out is not None
    parts = [f"In bits per character: {event.held_out:.3f}"]
    if event.standard_error is not None:
        parts.append(f" ± {event.standard_error:.3f} ({event.held_out_odd:.3f} where it did not choose the step)")
    parts.append(f"; {event.held_out / event.yardsticks['bytes_per_character']:.3f} per byte")
    if event.yardsticks["xz"] >= LEAST_XZ:
        parts.append(f", {event.held_out / event.yardsticks['xz']:.0%} of xz")
    steps = f" (of {event.step:,} done)" if event.best_step < event.step else ""
    parts.append(f"; after step {event.best_step:,}{steps}, in windows of {event.context_length:,} tokens.")
    return "".join(parts)


def against_the_table(event: Finished) -> str:
    """How the model stands beside the best n-gram: passage by passage, so that the error is that of the difference."""
    name = event.yardsticks["best_ngram_name"]
    table = "counting letters" if name == "letters" else f"the best letter table ({name})"
    error = event.ngram_lead_error or 0.0
    figure = f"{abs(event.ngram_lead):.3f}" + ("" if event.ngram_lead_error is None else f" ± {error:.3f}")
    if abs(event.ngram_lead) <= error:
        return f"As good as {table}: the difference, {figure} bits, is within its error."
    return f"{'Better' if event.ngram_lead > 0 else 'Worse'} than {table} by {figure} bits."


def kept_step(event: Finished) -> str:
    """Which step was kept, if the last is worse by more than chance."""
    if not learned_by_heart(event):
        return ""
    return (
        f"It was best at step {event.best_step:,}, which was kept; from there on it learned the text by heart and did"
        f" worse on the rest ({event.last_held_out:.3f} at the end)."
    )


def learned_by_heart(event: Finished) -> bool:
    """Whether the end is worse than the best step, by more than chance, while the text that was read went on better."""
    assert event.held_out is not None
    assert event.last_held_out is not None
    got_worse = event.last_held_out > event.held_out + (event.standard_error or 0.0)
    return got_worse and event.train is not None and event.train < event.held_out


def recites(event: Finished) -> bool:
    """Whether the sample holds a passage of the training text, longer than people's own passages share with it."""
    return len(event.copied) >= max(RECITED, len(event.usually_shared) + 1)


def advice(event: Finished) -> str:
    """What would make the next run better, judged by this one; nothing for one that was stopped, or not tested."""
    if not event.completed or event.held_out is None:
        return ""
    gap = math.nan if event.train is None else event.held_out - event.train
    longer = f"--minutes {event.minutes * LONGER:g}" if event.minutes else f"--steps {event.steps * LONGER}"
    if learned_by_heart(event):
        return "More text would help most; or fewer steps, or --model.dropout 0.2."
    if event.used_up:
        return f"More text would help most: this one was read {event.epochs:.0f} times, which is as often as it pays."
    readings = event.epochs * event.text_share
    if readings < 1 and event.minutes:
        minutes = math.ceil(event.minutes + event.training_seconds / 60 * (1 / readings - 1))
        return (
            f"More time would help most: it read {readings:.0%} of the text; --minutes {minutes:,} would read it all."
        )
    if gap > BY_HEART and readings >= MEMORABLE:
        return f"More text would help most: it knows what it read much better ({event.train:.2f}) than new text."
    if gap < WITH_ROOM and event.epochs >= 2 and event.ngram_lead > 0:  # behind the table, no size is to blame yet
        wider = 32 * math.ceil(event.d_model * 4 / 3 / 32)
        return f"A larger model would help most, with more time: --model.d-model {wider} {longer}."
    return f"More time would help most: {longer}."
