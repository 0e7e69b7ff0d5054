"""The vocabulary: ids, closed lists and records that stages, stores and runners share. No I/O."""
