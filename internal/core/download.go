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
	// MediaArchive is that of several files in one: a tar, compressed by gzip.
	MediaArchive = "application/gzip"
)

// DownloadRequest asks for documents of a catalogue as a file, or as several in an archive (CONTRACT section 5).
type DownloadRequest struct {
	// Params is a JSON object that says which documents, columns and files, as Arranger's clients send it or in the form of
	// this server. Its members are not checked.
	Params json.RawMessage
	// Accept is the media type of this file that the client's Accept header names and likes best, "" where it names none. It
	// counts where Params does not say the format.
	Accept string
	// Caller is what the download counts as.
	Caller Caller
}

// DownloadHead is what a client is told of a download before the first byte.
type DownloadHead struct {
	// ContentType is a media type, with its parameters where it has some.
	ContentType string
	// FileName is what the client may call the file, in any characters: what no file can be called is taken out of it.
	FileName string
}

// BeginDownload says what a download is and gives where its bytes go. It is called once at most, when everything that can be
// refused has been looked at: an error before that, and its own, which says that the client does not accept the content
// type, still reach the client as errors; one after it can only cut the download. The writer keeps no bytes that it was given,
// waits for the client, and fails when that has gone.
type BeginDownload func(DownloadHead) (io.Writer, error)
