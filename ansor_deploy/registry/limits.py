"""How large files of others may be: known without what reads them, which takes longer to import."""

BUNDLE_BYTES = 1 << 28
SIGNATURE_BYTES = 8192
