package query

// Key gives a value of a numeric, date or boolean type as a number that is ordered as the values are: what a document holds,
// or one of Node.Terms. Texts that are no value of the type give false. The types of fractions round as the engine does. Dates
// are milliseconds, date_nanos nanoseconds since 1970.
func Key(f Field, text string) (uint64, bool) { return 0, false }

// KeyRange gives the keys, lo and hi included, that lie within a Range; false when there is none.
func KeyRange(f Field, from, to Bound) (lo, hi uint64, ok bool) { return 0, 0, false }

// Number gives the value of a key: for a date milliseconds since 1970, for a boolean 0 or 1.
func Number(f Field, key uint64) float64 { return 0 }

// Text gives the value of a key as Bucket.Key says it.
func Text(f Field, key uint64) string { return "" }

// Keyed tells whether values of a type have keys; all others are texts.
func Keyed(fieldType string) bool { return false }
