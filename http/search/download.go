package search

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"

	"tutti/http/api"
	"tutti/http/problem"
	"tutti/internal/core"
)

const (
	contentTypeForm   = "application/x-www-form-urlencoded"
	headerDisposition = "Content-Disposition"
	// fieldParams is the field of a form, and may be the member of an object, that says what to download.
	fieldParams = "params"
)

// downloadOffers are the media types that a download may have. A browser that sends a form takes any.
func downloadOffers() []string {
	return []string{core.MediaTSV, core.MediaCSV, core.MediaJSONLines, core.MediaJSON, core.MediaArchive}
}

// downloads handles downloads.
type downloads struct{ port Downloads }

// download answers documents as a file. What fits into one chunk goes with its length; of more, what fails on the way breaks the
// connection off, so that a part is never taken for the whole.
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

// downloadStream is where a download goes.
type downloadStream struct {
	accept []string
	list   *api.ListStream
	begun  bool
}

var _ io.Writer = (*downloadStream)(nil)

// begin is a core.BeginDownload.
func (d *downloadStream) begin(head core.DownloadHead) (io.Writer, error) {
	mediaType, _, err := mime.ParseMediaType(head.ContentType)
	if err != nil || d.begun {
		return nil, core.WrapError(core.CodeInternal, "the download began twice or without a media type", err)
	}
	if api.Negotiate(d.accept, mediaType) == "" {
		return nil, &core.Error{
			Code: problem.CodeNotAcceptable, Message: "the download is " + mediaType + ", which the header Accept excludes",
			Hint: "accept " + mediaType + ", or ask for another format",
		}
	}
	d.begun = true
	d.list.ContentType = head.ContentType
	d.list.W.Header().Set(headerDisposition, attachment(head.FileName))
	return d, nil
}

// Write takes a piece of the file.
func (d *downloadStream) Write(b []byte) (int, error) {
	if err := d.list.R.Context().Err(); err != nil {
		return 0, err
	}
	if err := d.list.Add(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// namedMedia returns the media type of a download that a client names and likes best, "" where it names none.
func namedMedia(accept []string) string {
	var named []string
	for _, offer := range downloadOffers() {
		if api.PreferenceFor(accept, offer).Rank == api.RankNamed {
			named = append(named, offer)
		}
	}
	return api.Negotiate(accept, named...)
}

// downloadParams reads what to download: the field of a form, as pages with Arranger's components send it, or a JSON object
// that is it, or has it under the name of that field.
func downloadParams(r *http.Request) (json.RawMessage, error) {
	mediaType, err := api.Declared(r.Header, contentTypeForm, api.ContentTypeJSON)
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

// formParams returns the params of a form, whose other fields are ignored: pages send headers and a key along.
func formParams(body []byte) (json.RawMessage, error) {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the form is malformed", err)
	}
	switch given := fields[fieldParams]; len(given) {
	case 0:
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "field " + fieldParams + " of the form is missing",
			Hint: "it is a JSON object that says what to download",
		}
	case 1:
		return checkedParams("field "+fieldParams+" of the form", []byte(given[0]))
	default:
		return nil, core.NewError(core.CodeInvalid, "field "+fieldParams+" of the form is given more than once")
	}
}

// checkedParams returns params that are a JSON object.
func checkedParams(what string, params []byte) (json.RawMessage, error) {
	if _, err := api.DecodeObjectOf(what, params); err != nil {
		return nil, err
	}
	return params, nil
}
