package search

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxFileName is the maximum length of a file name in bytes: below the 255 of common file systems, with room for the suffix of
	// a browser such as " (1)".
	maxFileName = 200
	// plainFileName is the name of a download that has no usable one.
	plainFileName = "download"
)

// attachment returns a Content-Disposition value (RFC 6266): an ASCII file name and, if the name has other characters, filename* in
// UTF-8 (RFC 8187).
func attachment(fileName string) string {
	name := sanitizeFileName(fileName)
	plain := strings.Map(func(c rune) rune {
		if c > '~' || c == '%' { // some clients decode escapes also here
			return '_'
		}
		return c
	}, name)
	header := `attachment; filename="` + plain + `"`
	if plain != name {
		header += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return header
}

// sanitizeFileName replaces path separators and characters that some systems forbid, and removes control and invisible characters,
// such as marks that change the text direction.
func sanitizeFileName(name string) string {
	name = strings.Map(func(c rune) rune {
		switch {
		case c == utf8.RuneError || unicode.In(c, unicode.C, unicode.Zl, unicode.Zp):
			return -1
		case strings.ContainsRune(`/\:*?"<>|`, c):
			return '_'
		case unicode.IsSpace(c):
			return ' '
		default:
			return c
		}
	}, name)
	// A leading dot hides a file, and some systems drop a trailing one.
	name = strings.Trim(name, ". ")
	if len(name) > maxFileName {
		name = truncateFileName(name)
	}
	if name == "" {
		return plainFileName
	}
	return name
}

// truncateFileName shortens a name to maxFileName bytes and keeps its extension.
func truncateFileName(name string) string {
	extension := ""
	if at := strings.LastIndexByte(name, '.'); at > len(name)-maxExtension {
		extension = name[at:]
	}
	kept := name[:maxFileName-len(extension)]
	for !utf8.ValidString(kept) {
		kept = kept[:len(kept)-1]
	}
	return strings.TrimRight(kept, ". ") + extension
}

// maxExtension is the maximum length in bytes of an extension.
const maxExtension = 16
