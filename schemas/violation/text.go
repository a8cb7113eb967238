package violation

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Lengths of quoted values in messages.
const (
	MaxQuotedRunes = 80
	MaxListed      = 20
)

// Quoted shows a text in a message, shortened.
func Quoted(s string) string {
	return strconv.Quote(Shortened(s, MaxQuotedRunes))
}

// Shortened returns the first limit characters of s, with an ellipsis if it was longer.
func Shortened(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

// Listed joins words for a message, shortened.
func Listed(words []string) string {
	more := ""
	if len(words) > MaxListed {
		more = " and " + strconv.Itoa(len(words)-MaxListed) + " more"
		words = words[:MaxListed]
	}
	return strings.Join(words, ", ") + more
}

// Counted returns a number with its noun.
func Counted(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return strconv.Itoa(n) + " " + plural
}
