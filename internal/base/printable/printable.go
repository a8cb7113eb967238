// Package printable makes text of other systems fit for a terminal.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Line returns s on one line without control characters: ids, names and reasons come from other systems, and must not move the
// cursor with an escape sequence or change the text direction. Characters that are not printable are escaped as in Go.
func Line(s string) string {
	return escape(s, func(rune) bool { return false })
}

// Lines is like Line but keeps line feeds and tabs.
func Lines(s string) string {
	return escape(s, func(c rune) bool { return c == '\n' || c == '\t' })
}

func escape(s string, keep func(rune) bool) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsGraphic(c) && !keep(c) }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsGraphic(c) || keep(c):
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
		i += size
	}
	return b.String()
}

// Width returns the columns that a printable s takes on a terminal: two for East Asian characters and emoji, none for combining marks.
func Width(s string) int { return text.StringWidth(s) }
