package catalogue

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// displaySegments is the number of trailing segments of a name in its display name: the field and its parent.
const displaySegments = 2

// displayName converts the last segments of a dotted name to words: "donor.ageAtDiagnosis" becomes "Donor Age At Diagnosis". A
// name without words is returned unchanged.
func displayName(name string) string {
	segments := strings.Split(name, ".")
	var words []string
	for _, segment := range segments[max(0, len(segments)-displaySegments):] {
		words = append(words, wordsOf(segment)...)
	}
	if len(words) == 0 {
		return name
	}
	return strings.Join(words, " ")
}

// wordsOf splits a segment at underscores, hyphens and spaces, and before a capital that follows a small letter, so that acronyms
// stay together; each word is capitalized.
func wordsOf(segment string) []string {
	var words []string
	for _, part := range strings.FieldsFunc(segment, isSeparator) {
		start, small := 0, false
		for i, r := range part {
			if small && unicode.IsUpper(r) {
				words = append(words, capitalized(part[start:i]))
				start = i
			}
			small = unicode.IsLower(r)
		}
		words = append(words, capitalized(part[start:]))
	}
	return words
}

func isSeparator(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) }

func capitalized(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToTitle(first)) + word[size:]
}
