"""The two small pages around the token: one that asks for it, and one that leads on."""

from __future__ import annotations

from html import escape
from typing import Final

PAGE_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}
_FORM: Final = """\
<p>This page needs a token, so that nobody else can read your runs.</p>
<p>The token is in the link that nethook printed in the terminal where it was started
(<code>nethook ui</code> or <code>nethook run --ui</code>), or in the file named by
<code>--token-file</code>. Open that link, or paste it or the token here.</p>
<form method="post">
<label for="token">Token or link</label>
<input id="token" name="token" type="password" autocomplete="off" required autofocus>
<button>Open</button>
</form>
"""


def token_page(what: str = "") -> str:
    """The page that asks for the token, and says what was wrong before."""
    said = f'<p role="alert">{escape(what)}</p>\n' if what else ""
    return _page(said + _FORM)


def forwarding_page(address: str) -> str:
    """A page that leads on to an address at once. Of links, only the one of the page itself."""
    shown = escape(address)
    return _page(
        f'<p><a href="{shown}">Open the page</a></p>',
        f'<meta http-equiv="refresh" content="0; url={shown}">',
    )


def _page(body: str, head: str = "") -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>nethook</title>
<link rel="icon" href="data:,">
{head}
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 1rem; }}
form {{ display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }}
input {{ flex: 1; min-width: 12rem; }}
input, button {{ font: inherit; padding: .3rem .6rem; }}
</style>
</head>
<body>
<main>
<h1>nethook</h1>
{body}
</main>
</body>
</html>
"""
