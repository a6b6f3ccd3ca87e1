"""The registry in a browser: Datasette, with pages of our own."""
