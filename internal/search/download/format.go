package download

import (
	"path"
	"strings"
	"unicode"

	"tutti/internal/core"
)

// Format is the format of a file.
type Format uint8

// Formats of a file.
const (
	// TSV separates cells by tabs, and replaces tabs and line breaks within cells by spaces.
	TSV Format = iota
	// CSV is the format of RFC 4180.
	CSV
	// JSON is one array with an object for each row.
	JSON
	// JSONLines is an object for each row on a line of its own.
	JSONLines
	// ArrangerJSON is the format json of Arranger's clients: JSONLines after a line with the names of the columns.
	ArrangerJSON
)

// String returns the name of the format in params, which is also the extension of its files.
func (f Format) String() string {
	switch f {
	case CSV:
		return "csv"
	case JSON, ArrangerJSON:
		return "json"
	case JSONLines:
		return "jsonl"
	default:
		return "tsv"
	}
}

// delimited reports whether the format has cells.
func (f Format) delimited() bool { return f == TSV || f == CSV }

// contentType returns the media type of a file.
func (f Format) contentType() string {
	switch f {
	case CSV:
		return core.MediaCSV + "; charset=utf-8"
	case JSON:
		return core.MediaJSON
	case JSONLines, ArrangerJSON:
		return core.MediaJSONLines
	default:
		return core.MediaTSV + "; charset=utf-8"
	}
}

// formatOf returns the format with a name in params.
func formatOf(name string) (Format, bool) {
	switch strings.ToLower(name) {
	case "tsv":
		return TSV, true
	case "csv":
		return CSV, true
	case "json":
		return JSON, true
	case "jsonl", "ndjson":
		return JSONLines, true
	default:
		return 0, false
	}
}

// acceptedFormat returns the format of a media type, and whether it is that of an archive.
func acceptedFormat(mediaType string) (f Format, archive bool) {
	switch mediaType {
	case core.MediaCSV:
		return CSV, false
	case core.MediaJSON:
		return JSON, false
	case core.MediaJSONLines:
		return JSONLines, false
	case core.MediaArchive:
		return TSV, true
	default:
		return TSV, false
	}
}

// withExtension adds the extension of a format to a name without one.
func withExtension(name string, f Format) string {
	if isExtension(path.Ext(name)) {
		return name
	}
	return strings.TrimSuffix(name, ".") + "." + f.String()
}

// isExtension reports whether the suffix of a name from its last dot is a format: names may contain other dots.
func isExtension(ext string) bool {
	const longest = len(".parquet")
	return len(ext) > 1 && len(ext) <= longest &&
		!strings.ContainsFunc(ext[1:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// archiveName adds the extension of an archive.
func archiveName(name string) string {
	for _, ext := range []string{".tar.gz", ".tgz", ".tar", ".gz"} {
		if cut, ok := strings.CutSuffix(name, ext); ok && cut != "" {
			name = cut
			break
		}
	}
	return name + ".tar.gz"
}
