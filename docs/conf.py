"""How the site is made of docs/: `sphinx-build -W -n -b html docs out/site`, or `tox -e docs`.

Sphinx, and not MkDocs with its Material theme, whose maintenance is uncertain: Sphinx checks every
link and anchor, and reads the same Markdown that a forge shows.
"""

from posixpath import dirname, join, normpath
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "ansor-deploy"
html_title = project
extensions = ["myst_parser"]
myst_heading_anchors = 4  # a heading is linked to as on a forge: page.md#its-words
html_theme = "furo"  # light and dark, narrow and wide; loads nothing from elsewhere
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def use_titles(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """A link that shows a page's file name, as Markdown does on a forge, shows its title here."""
    for link in doctree.findall(nodes.reference):
        linked = normpath(join(dirname(page), link.get("refuri", "").partition(".html")[0]))
        if link.astext().endswith(".md") and linked in app.env.titles:
            for text in list(link.findall(nodes.Text)):
                text.parent.replace(text, nodes.Text(app.env.titles[linked].astext()))


def be_accessible(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Say how deep the navigation's headings are, and let keys scroll what is too wide."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('"heading"', '"heading" aria-level="2"')
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    wide = '<div class="table-wrapper'
    context["body"] = body.replace(wide, wide.replace("<div", '<div tabindex="0"'))


def setup(app: Sphinx) -> None:
    """A language that Pygments does not know stays as it is."""
    app.add_lexer("ninja", TextLexer)
    app.connect("doctree-resolved", use_titles)
    app.connect("html-page-context", be_accessible, priority=900)  # after the theme
