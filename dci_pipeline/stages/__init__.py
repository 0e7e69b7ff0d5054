"""Pure stages, in flow order: discover, fetch, extract, normalize, diff. No I/O, no clock, no randomness.

`extract` makes `model.extraction.Extraction` (with `model.extraction.Block` and `model.records.FieldValue`);
`diff` compares two of them and makes `model.extraction.Delta`.
"""
