"""What the hub says about things, as dataclasses: the fields that its OpenAPI document lists."""
