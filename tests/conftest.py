"""The rule sets on which every test that asks for `rules` runs."""

import pytest
from games import RULES, SWITCHED, rules_id


@pytest.fixture(params=(*RULES, *SWITCHED), ids=rules_id)
def rules(request):
    return request.param
