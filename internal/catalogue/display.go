package catalogue

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// displaySegments is how many segments of a name make its display name: the field, and what it belongs to.
const displaySegments = 2

// displayName says the last segments of a dotted name in words: "donor.ageAtDiagnosis" is "Donor Age At Diagnosis". A name
// without any word is given as it is.
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

// wordsOf splits at underscores, hyphens and spaces, and where a capital follows a small letter, so that an acronym keeps
// its capitals; each word begins with a capital.
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
