package search

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

const (
	contentTypeForm   = "application/x-www-form-urlencoded"
	headerDisposition = "Content-Disposition"
	// fieldParams is the form field, or optional member of a JSON object, that holds the download parameters.
	fieldParams = "params"
)

// downloadOffers are the media types that a download may have. Browsers that submit a form accept all of them.
func downloadOffers() []string {
	return []string{core.MediaTSV, core.MediaCSV, core.MediaJSONLines, core.MediaJSON, core.MediaArchive}
}

// downloads handles the download routes.
type downloads struct{ port Downloads }

// ServeDownload sends documents of a catalogue as a file. The body of the request is one of POST /{catalogueId}/download.
func ServeDownload(w http.ResponseWriter, r *http.Request, port Downloads, c *core.Catalogue) error {
	return downloads{port}.download(w, r, c)
}

// download sends documents as a file. A file that fits into one chunk is sent with Content-Length. If a longer one fails midway,
// the connection is aborted so that the client detects the truncation.
func (h downloads) download(w http.ResponseWriter, r *http.Request, c *core.Catalogue) error {
	params, err := downloadParams(r)
	if err != nil {
		return err
	}
	caller, _ := api.CallerOf(r.Context())
	d := &downloadStream{accept: r.Header.Values("Accept"), list: api.NewListStream(w, r, "", "")}
	err = h.port.Download(r.Context(), c.ID, caller, core.DownloadRequest{
		Params: params, Accept: namedMedia(d.accept), Caller: api.LimitCaller(r),
	}, d.begin)
	if err == nil && !d.begun {
		err = core.NewError(core.CodeInternal, "the download has neither begun nor failed")
	}
	if err == nil {
		return d.list.End("")
	}
	if !d.list.Begun {
		w.Header().Del(headerDisposition)
	}
	return d.list.Fail(err)
}

// downloadStream writes a download to the response.
type downloadStream struct {
	accept []string
	list   *api.ListStream
	begun  bool
}

var _ io.Writer = (*downloadStream)(nil)

// begin implements core.BeginDownload: it checks Accept and sets the headers.
func (d *downloadStream) begin(head core.DownloadHead) (io.Writer, error) {
	mediaType, _, err := mime.ParseMediaType(head.ContentType)
	if err != nil || d.begun {
		return nil, core.WrapError(core.CodeInternal, "the download began twice or without a media type", err)
	}
	if media.Negotiate(d.accept, mediaType) == "" {
		return nil, &core.Error{
			Code: problem.CodeNotAcceptable, Message: "the download is " + mediaType + ", which the header Accept excludes",
			Hint: "accept " + mediaType + ", or request another format",
		}
	}
	d.begun = true
	d.list.ContentType = head.ContentType
	d.list.W.Header().Set(headerDisposition, attachment(head.FileName))
	return d, nil
}

// Write implements io.Writer.
func (d *downloadStream) Write(b []byte) (int, error) {
	if err := d.list.R.Context().Err(); err != nil {
		return 0, err
	}
	if err := d.list.Add(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// namedMedia returns the download media type with the highest preference among those that Accept names explicitly, "" if it names
// none.
func namedMedia(accept []string) string {
	var named []string
	for _, offer := range downloadOffers() {
		if media.PreferenceFor(accept, offer).Rank == media.RankNamed {
			named = append(named, offer)
		}
	}
	return media.Negotiate(accept, named...)
}

// downloadParams returns the download parameters: the form field params (the form of Arranger's components), a JSON object, or its
// member params.
func downloadParams(r *http.Request) (json.RawMessage, error) {
	mediaType, err := media.Declared(r.Header, contentTypeForm, media.JSON)
	if err != nil {
		return nil, err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return nil, err
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "the body is empty",
			Hint: "send a JSON object, or a form whose field " + fieldParams + " is one",
		}
	}
	if mediaType == contentTypeForm {
		return formParams(body)
	}
	members, err := api.DecodeObject(body)
	if err != nil {
		return nil, err
	}
	if !members.Has(fieldParams) {
		return body, nil
	}
	params := members[fieldParams]
	if params[0] == '"' {
		text, err := members.Text(fieldParams)
		if err != nil {
			return nil, err
		}
		params = json.RawMessage(text)
	}
	return checkedParams("member "+fieldParams+" of the body", params)
}

// formParams returns the form field params. Other fields are ignored: pages also send headers and a key.
func formParams(body []byte) (json.RawMessage, error) {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the form is malformed", err)
	}
	switch given := fields[fieldParams]; len(given) {
	case 0:
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "field " + fieldParams + " of the form is missing",
			Hint: "set it to a JSON object that selects what to download",
		}
	case 1:
		return checkedParams("field "+fieldParams+" of the form", []byte(given[0]))
	default:
		return nil, core.NewError(core.CodeInvalid, "field "+fieldParams+" of the form is given more than once")
	}
}

// checkedParams returns params, or an error if they are not a JSON object.
func checkedParams(what string, params []byte) (json.RawMessage, error) {
	if _, err := api.DecodeObjectOf(what, params); err != nil {
		return nil, err
	}
	return params, nil
}
