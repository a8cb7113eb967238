// Package media reads the media types that requests declare and accept.
//
// It imports http/problem and internal/core only.
package media

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tutti/http/problem"
	"tutti/internal/core"
)

// Media types of most responses and of pages, without parameters.
const (
	JSON = "application/json"
	HTML = "text/html"
)

// JSONContent rejects a Content-Type other than JSON. A missing Content-Type is accepted.
func JSONContent(header http.Header) error {
	refused := &core.Error{
		Code: core.CodeUnsupportedMedia, Message: "the body is not declared as JSON",
		Hint: "send Content-Type: application/json, and no Content-Encoding",
	}
	if enc := header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refused
	}
	declared := header.Get("Content-Type")
	if declared == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(declared)
	if err != nil || (mediaType != JSON && !strings.HasSuffix(mediaType, "+json")) {
		return refused
	}
	return nil
}

// Declared returns which of the media types Content-Type declares. Another or no type, a charset other than UTF-8 and a
// Content-Encoding are CodeUnsupportedMedia.
func Declared(header http.Header, types ...string) (string, error) {
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, encoding := params["charset"], header.Get("Content-Encoding")
	switch {
	case err != nil || !slices.Contains(types, mediaType),
		charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii"),
		encoding != "" && !strings.EqualFold(encoding, "identity"):
		return "", &core.Error{
			Code: core.CodeUnsupportedMedia, Message: "the body is not declared as " + strings.ReplaceAll(strings.Join(types, " or "), JSON, "JSON"),
			Hint: "send Content-Type: " + strings.Join(types, " or ") + ", in UTF-8, and no Content-Encoding",
		}
	}
	return mediaType, nil
}

// Negotiate returns the offered media type that the Accept headers prefer (RFC 9110, 12.5.1), "" when they accept none: the
// highest quality wins, then the most specific range, then the first offer.
func Negotiate(accept []string, offers ...string) string {
	best, liked := "", Preference{}
	for _, offer := range offers {
		p := PreferenceFor(accept, offer)
		if p.quality > 0 && (best == "" || p.quality > liked.quality || p.quality == liked.quality && p.Rank > liked.Rank) {
			best, liked = offer, p
		}
	}
	return best
}

// RankNamed is the rank of a media type that Accept names exactly.
const RankNamed = 2

// Preference is how Accept headers rate one media type.
type Preference struct {
	// Rank is the specificity of the range that matched, -1 for none; quality is that range's.
	Rank    int
	quality float64
}

// PreferenceFor returns how accept rates a media type: the most specific range decides. Without any range every type is
// accepted.
func PreferenceFor(accept []string, offer string) Preference {
	listed, p := false, Preference{Rank: -1}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		listed = true
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := rangeRank(mediaType, offer)
		if rank < 0 || rank < p.Rank {
			continue
		}
		q := 1.0
		if v, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = v
		}
		if rank == p.Rank {
			q = max(q, p.quality)
		}
		p = Preference{Rank: rank, quality: q}
	}
	if !listed {
		return Preference{Rank: 0, quality: 1}
	}
	return p
}

// rangeRank returns how specifically a media range matches a media type, -1 for no match. A client that accepts problems
// accepts JSON.
func rangeRank(mediaRange, offer string) int {
	kind, _, _ := strings.Cut(offer, "/")
	switch {
	case mediaRange == offer, mediaRange == problem.ContentTypeProblem && offer == JSON:
		return RankNamed
	case mediaRange == kind+"/*":
		return 1
	case mediaRange == "*/*":
		return 0
	default:
		return -1
	}
}
