"""The looks of every page: one style sheet, for a screen, a phone, the dark and paper.

Charts and swatches are painted with the variables named here, so that they change with the light.

In: nothing.  Out: `STYLE`.  Used by: page.py.  Read next: page.py.
"""

SERIES = 8  # colours told apart, as --series-1 ...; further lines are dashed

STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #1c1d20; --muted: #63666d; --rule: #dedfd9; --wash:
  #f3f3ee;
  --link: #1d5fa8; --warn: #9a3412; --serif: "Iowan Old Style", "Palatino Linotype", Palatino, "Source Serif 4",
  "Noto Serif", Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Noto Sans Mono", "DejaVu Sans Mono",
  monospace;
  --series-1: #1f6fb5; --series-2: #c4540b; --series-3: #2c8a57; --series-4: #8a4fb0; --series-5: #b3892a;
  --series-6: #c03a6b; --series-7: #3a8f9e; --series-8: #6b6b6b; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #16171a; --ink: #e8e8e4; --muted: #a0a3aa; --rule: #34363c; --wash: #1f2125; --link: #7db4ee;
    --warn: #f0a070;
    --series-1: #62aaf0; --series-2: #f0914e; --series-3: #5fc38c; --series-4: #c394e6; --series-5: #dcb85a;
    --series-6: #ee7fa8; --series-7: #6fc7d6; --series-8: #a9a9a9; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 var(--sans); overflow-wrap:
  anywhere; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font: 600 1.9rem/1.2 var(--serif); margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font: 600 1.25rem/1.3 var(--serif); margin: 2.8rem 0 .6rem; padding-top: .9rem; border-top: 1px solid
  var(--rule); break-after: avoid; }
h3 { font: 600 1rem/1.4 var(--sans); margin: 1.6rem 0 .4rem; break-after: avoid; }
p { margin: .6rem 0; }
a { color: var(--link); }
small, .note, figcaption { color: var(--muted); font-size: .875rem; line-height: 1.45; }
.lead { font: 1.15rem/1.5 var(--serif); }
.warn { border-inline-start: 3px solid var(--warn); padding-inline-start: .8rem; }
code, pre, .code { font-family: var(--mono); font-size: .86em; }
pre { white-space: pre-wrap; background: var(--wash); border-radius: 4px; padding: .7rem .9rem; margin: .6rem 0;
  }
.passage { white-space: pre-wrap; font: 1rem/1.6 var(--serif); background: var(--wash); border-radius: 4px;
  padding: .8rem 1rem;
  margin: .4rem 0; text-align: start; unicode-bidi: isolate; }
.passage.code { font-family: var(--mono); font-size: .82rem; line-height: 1.5; }
dl { margin: .6rem 0; }
dl > div { display: grid; grid-template-columns: minmax(7rem, 13rem) 1fr; gap: 0 1rem; padding: .28rem 0;
  border-bottom: 1px solid var(--rule); }
dt { color: var(--muted); } dd { margin: 0; min-width: 0; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; line-height: 1.4; min-width: 50%; }
th { text-align: start; font-weight: 600; color: var(--muted); border-bottom: 1px solid var(--ink); padding:
  .25rem 1rem .25rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--rule); padding: .3rem 1rem .3rem 0; vertical-align: top; overflow-wrap:
  break-word; }
.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; break-inside: avoid; }
figcaption { margin-top: .3rem; }
svg { display: block; width: 100%; height: auto; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
svg text { font-family: var(--sans); }
.chart .narrow { display: none; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: 0 0 .3rem; padding: 0; list-style: none;
  font-size: .875rem; color: var(--muted); }
.swatch { display: inline-block; width: 1.4rem; border-top: 2.5px solid; vertical-align: .25em;
  margin-inline-end: .45rem; }
details > summary { cursor: pointer; color: var(--link); }
.pair { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: 0 1.5rem; }
@media (max-width: 600px) {
  main { padding: 1.4rem 1rem 3rem; }
  h1 { font-size: 1.55rem; }
  dl > div { grid-template-columns: 1fr; }
  .chart .wide-chart { display: none; } .chart .narrow { display: block; } }
@media print {
  :root { color-scheme: light; --paper: #fff; --wash: #f6f6f3; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .wide { overflow: visible; } a { color: inherit; }
  tr, dl > div { break-inside: avoid; }
  .chart .wide-chart { display: block; } .chart .narrow { display: none; } }
""".strip()
