from __future__ import annotations

import pytest
from django.template import Context, Template


@pytest.mark.parametrize("tag", ["{% empty_state title='No runs' %}", "{% note 'hint' %}"])
def test_a_value_in_the_text_is_escaped_once(tag: str) -> None:
    end = "{% endempty_state %}" if "empty_state" in tag else "{% endnote %}"
    page = Template(f"{{% load components %}}{tag}Say '{{{{ value }}}}'.{end}").render(
        Context({"value": '<b>"R&D"</b>'})
    )

    assert "Say '&lt;b&gt;&quot;R&amp;D&quot;&lt;/b&gt;'." in page
