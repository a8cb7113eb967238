package core

import (
	"encoding/json"
	"io"
)

// Media types of downloads.
const (
	MediaTSV       = "text/tab-separated-values"
	MediaCSV       = "text/csv"
	MediaJSONLines = "application/x-ndjson"
	MediaJSON      = "application/json"
	// MediaArchive is a tar of several files, compressed with gzip.
	MediaArchive = "application/gzip"
)

// DownloadRequest requests documents of a catalogue as a file, or as several files in an archive (CONTRACT section 5).
type DownloadRequest struct {
	// Params is a JSON object that selects documents, columns and files, in the form of Arranger's clients or of this server. Its
	// members are not validated.
	Params json.RawMessage
	// Accept is the preferred supported media type of the client's Accept header, "" for none. It applies if Params does not set
	// the format.
	Accept string
	// Caller is whose limit the download counts towards.
	Caller Caller
}

// DownloadHead describes a download before its first byte.
type DownloadHead struct {
	// ContentType is a media type with its parameters.
	ContentType string
	// FileName is the suggested file name. It may contain any characters; characters that are invalid in file names are removed
	// later.
	FileName string
}

// BeginDownload starts a response and returns the writer of its body. It is called at most once, after all validation: an error
// before that reaches the client as an error, as does its own error, which means that the client does not accept the content
// type. A later error can only abort the download. The writer does not retain bytes, blocks on a slow client, and fails once the
// client is gone.
type BeginDownload func(DownloadHead) (io.Writer, error)
