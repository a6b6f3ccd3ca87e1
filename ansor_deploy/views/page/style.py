"""A report's style: on screens, light or dark, narrow or wide, and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --soft: #5a6675; --rule: #d5dbe3;
  --tuned: #0b62b0; --default: #a85300; --good: #1a7339; --bad: #b3261e; --panel: #f4f6f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --paper: #14181f; --soft: #a3afbd;
  --rule: #343d49; --tuned: #6cb2f5; --default: #f0a35c; --good: #6fd08c; --bad: #ff8a80;
  --panel: #1d232c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.7rem; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 .5rem; padding-bottom: .25rem; border-bottom: 1px solid var(--rule); }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
p { max-width: 46rem; } .soft { color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none; }
a { color: var(--tuned); }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 3px solid var(--tuned);
  outline-offset: 2px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem;
  margin: 1.5rem 0; }
.figures div { padding: .75rem 1rem; background: var(--panel); border-radius: .4rem; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.figures small { display: block; color: var(--soft); font-size: .8rem; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--rule); text-align: left;
  vertical-align: middle; }
th { color: var(--soft); font-weight: 600; } .number { text-align: right; white-space: nowrap; }
code { font: .85em ui-monospace, monospace; }
.bar { display: inline-block; height: .8rem; min-width: 1px; background: var(--tuned);
  vertical-align: middle; }
.bar.default, .dot.default { background: var(--default); }
.dot { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%;
  background: var(--tuned); } td.bars { width: 22%; min-width: 7rem; }
svg { width: 100%; height: auto; max-width: 44rem; font: 12px system-ui, sans-serif; }
svg text { fill: var(--soft); } .grid { stroke: var(--rule); fill: none; }
.roof { stroke: var(--ink); stroke-width: 2; fill: none; }
.curve { stroke: var(--tuned); stroke-width: 2; fill: none; }
circle.tuned { fill: var(--tuned); } circle.default { fill: var(--default); }
.pair, .multiples { display: grid; gap: 1rem; }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }
.multiples { grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); }
.multiples figure { margin: 0; } figcaption { font-size: .82rem; }
dl.plain { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .2rem 1rem; }
dl.plain dt { color: var(--soft); } dl.plain dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { max-width: none; font-size: 11px; } nav { display: none; }
  tr, figure, .figures div { break-inside: avoid; } details { display: block; } }
"""
