"""Types of JSON values, with their bounds, for manifests and for answers of commands."""

from typing import Annotated

from msgspec import Meta

Name = Annotated[str, Meta(max_length=4096)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$", max_length=64, description="SHA-256")]
Time = Annotated[str, Meta(description="a time in ISO 8601, in UTC")]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Cores = Annotated[int, Meta(ge=1, le=4096)]
Bytes = Annotated[int, Meta(ge=0, le=2**53, description="bytes")]
Ms = Annotated[float, Meta(ge=0, description="milliseconds")]
Seconds = Annotated[float, Meta(ge=0, description="seconds")]
Share = Annotated[float, Meta(ge=0, description="a share of the whole, 0 to 1")]
Ratio = Annotated[float, Meta(ge=0, description="of the first time to the second")]
Shape = tuple[Count, ...]

# Floats that may be infinite or NaN, which JSON does not have: these are printed as null.
OR_NULL = "or null"  # marks such a type in a schema
_MARK = {OR_NULL: True}
MsIfKnown = Annotated[float, Meta(description="milliseconds", extra_json_schema=_MARK)]
SecondsIfKnown = Annotated[float, Meta(description="seconds", extra_json_schema=_MARK)]
