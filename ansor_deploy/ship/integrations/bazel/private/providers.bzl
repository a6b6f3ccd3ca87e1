"""What rules pass on to the rules that use them."""

AnsorInfo = provider(
    doc = "A model that was built.",
    fields = {
        "library": "File: NAME.so.",
        "header": "File: NAME.h, a typed call for C and C++.",
        "manifest": "File: NAME.json, what the library is and was made of.",
        "provenance": "File: NAME.intoto.json, the same as an in-toto statement.",
    },
)
