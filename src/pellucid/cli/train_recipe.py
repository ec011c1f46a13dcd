"""A recipe among the sources of `pellucid train`: what the flags come to with it.

The first source is a recipe if its name ends in .toml and one of a recipe's tables stands at its top; sources after it
take the place of the recipe's own. Any other .toml is a text like any other, and that is said.

In: flags.  Out: flags, a recipe.  Used by: train.py, train_series.py.  Read next: train_series.py.
"""

from dataclasses import replace
from pathlib import Path

from pellucid.cli.printable import printable
from pellucid.cli.train_flags import OUTSIDE_RECIPES, TrainFlags, as_settings, from_settings, recipe_fields
from pellucid.errors import ConfigError
from pellucid.model_config import is_own_part
from pellucid.run_config import TABLES, RecipeFile, Settings, looks_like_recipe, over, read_recipe


def recipe_in(flags: TrainFlags) -> RecipeFile | None:
    """The recipe that was given, if one was.

    Raises:
        ConfigError: if it is a recipe with a mistake in it.
    """
    first = Path(flags.sources[0]) if flags.sources else Path()
    if flags.resume is not None or first.suffix != ".toml" or not first.is_file():
        return None
    if not looks_like_recipe(first):
        print(printable(f"{first} is read as text: a recipe has {', '.join(TABLES[:-1])} or {TABLES[-1]} at its top."))
        return None
    recipe = read_recipe(first, recipe_fields())
    named = [value for settings in (recipe.settings, *recipe.variants.values()) for value in settings.values()]
    if any(map(is_own_part, named)) and not flags.own_code:
        raise ConfigError(
            f"your consent to run the code that {first} names",
            came=f"none for {', '.join(value for value in named if is_own_part(value))}",
            remedy="read it, and say --own-code if you trust it",
        )
    return recipe


def flag_settings(flags: TrainFlags) -> Settings:
    """What the command line says beside the recipe, which is its first source."""
    return as_settings(replace(flags, sources=flags.sources[1:]))


def composed(recipe: RecipeFile, flags: TrainFlags) -> TrainFlags:
    """The flags that say what a recipe of one run and the command line say together."""
    whole = from_settings(over(recipe.settings, flag_settings(flags)))
    for name in OUTSIDE_RECIPES:
        setattr(whole, name, getattr(flags, name))
    return whole
