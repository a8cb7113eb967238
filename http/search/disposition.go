package search

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxFileName is how long the name of a download may be, in bytes: what every file system takes, with room for what a
	// browser puts behind it.
	maxFileName = 200
	// plainFileName is that of a download without one.
	plainFileName = "download"
)

// attachment returns the Content-Disposition of a file (RFC 6266): its name in ASCII, which every client reads, and where that is
// not all of it once more in UTF-8 (RFC 8187).
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

// sanitizeFileName takes out of a name what a file cannot be called on some system, what would lead to another folder, and what
// is not seen, such as marks that turn the direction of an extension.
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
	// A leading dot hides a file, and a final one is lost on some systems.
	name = strings.Trim(name, ". ")
	if len(name) > maxFileName {
		name = truncateFileName(name)
	}
	if name == "" {
		return plainFileName
	}
	return name
}

// truncateFileName cuts a name that is too long before its extension.
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

// maxExtension is how long what is taken for an extension may be, in bytes.
const maxExtension = 16
