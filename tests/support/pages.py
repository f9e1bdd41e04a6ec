"""Pages of HTML in tests."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Gathers the tags and words of a page and the addresses that it refers to; tags that do not nest are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "data", "action")]

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_self_contained(text: str) -> Page:
    """The page, which is complete, runs nothing and refers to nothing outside."""
    page = Page(text)
    assert all(address.startswith("#") for address in page.addresses)
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert "@import" not in text
    assert text.count("url(") == text.count("url(#")
    return page
