package fromsong

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

const (
	// restPage is the number of analyses or types of one response.
	restPage = 100
	// restTimeout is the timeout of one request.
	restTimeout = 2 * time.Minute
	// tries is how often a request is sent while Song does not answer; firstDelay and maxDelay bound the delays between tries.
	tries                = 6
	firstDelay, maxDelay = 200 * time.Millisecond, 10 * time.Second
	// maxResponse bounds a response in bytes.
	maxResponse = 1 << 30
)

// server reads a Song through its routes.
type server struct {
	base  string
	token string
	zone  *time.Location
	files tlsconfig.Files
	http  *http.Client
}

// OpenServer returns the source for a Song at a URL. token, which may be empty, is sent as a bearer token; files are those of TLS; zone is for
// times without one.
func OpenServer(base, token string, files tlsconfig.Files, zone *time.Location) (Source, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, core.NewError(core.CodeInvalid, "the address of Song must be an http or https URL without credentials")
	}
	secure, err := tlsconfig.New(files)
	if err != nil {
		return nil, err
	}
	transport := secure.RoundTripper(http.DefaultTransport.(*http.Transport).Clone())
	client := &http.Client{Transport: transport, Timeout: restTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &server{base: strings.TrimRight(base, "/"), token: token, zone: zone, files: files, http: client}, nil
}

// Close implements Source.
func (s *server) Close(context.Context) error {
	s.http.CloseIdleConnections()
	return nil
}

// get requests a path and decodes the response. Connection errors and the statuses 429 and 5xx are retried.
func (s *server) get(ctx context.Context, path string, into any) error {
	for n := 0; ; n++ {
		err := s.try(ctx, path, into)
		if err == nil || n+1 == tries || !core.Retryable(err) || retry.Sleep(ctx, retry.Delay(n, firstDelay, maxDelay)) != nil {
			return err
		}
	}
}

func (s *server) try(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "the address of Song is not valid", err)
	}
	req.Header.Set("Accept", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		code := core.CodeUnavailable
		if reason, _ := s.files.TLSFailure(err); reason != "" { // which a retry does not change
			code = core.CodeUpstream
		}
		reason, hint := s.files.Failure(err)
		return &core.Error{Code: code, Message: "Song does not answer: " + reason, Hint: hint, Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		code := core.CodeUpstream
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
			code = core.CodeUnavailable
		}
		return core.NewError(code, fmt.Sprintf("Song answered GET %s with status %d", path, resp.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "the response of Song to GET "+path+" ended early", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return core.WrapError(core.CodeUpstream, "the response of Song to GET "+path+" cannot be decoded", err)
	}
	return nil
}

// Studies implements Source.
func (s *server) Studies(ctx context.Context) ([]datamodel.Study, error) {
	var ids []string
	if err := s.get(ctx, "/studies/all", &ids); err != nil {
		return nil, err
	}
	studies := make([]datamodel.Study, len(ids))
	for i, id := range ids {
		if err := s.get(ctx, "/studies/"+url.PathEscape(id), &studies[i]); err != nil {
			return nil, err
		}
		studies[i].ID = id
		if string(studies[i].Info) == "{}" || string(studies[i].Info) == "null" {
			studies[i].Info = nil
		}
	}
	return studies, nil
}

// Types implements Source.
func (s *server) Types(ctx context.Context) ([]datamodel.AnalysisType, error) {
	var all []datamodel.AnalysisType
	for {
		var page struct {
			Count     int `json:"count"`
			ResultSet []struct {
				Name      string                    `json:"name"`
				Version   int                       `json:"version"`
				CreatedAt string                    `json:"createdAt"`
				Schema    json.RawMessage           `json:"schema"`
				Options   datamodel.AnalysisOptions `json:"options"`
			} `json:"resultSet"`
		}
		path := "/schemas?unrenderedOnly=true&sort=version&sortOrder=ASC&limit=" + strconv.Itoa(restPage) + "&offset=" + strconv.Itoa(len(all))
		if err := s.get(ctx, path, &page); err != nil {
			return nil, err
		}
		for _, t := range page.ResultSet {
			all = append(all, datamodel.AnalysisType{Name: t.Name, Version: t.Version, CreatedAt: s.at(t.CreatedAt), Schema: t.Schema, Options: t.Options})
		}
		if len(page.ResultSet) == 0 || len(all) >= page.Count {
			return all, nil
		}
	}
}

// at parses a time of Song, the zero of Unix if it has none.
func (s *server) at(text string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t
	}
	if t, err := time.ParseInLocation("2006-01-02T15:04:05.999999999", text, s.zone); err == nil {
		return t
	}
	return time.Unix(0, 0)
}

// Analyses implements Source.
func (s *server) Analyses(ctx context.Context, study string, each func([]datamodel.ImportedAnalysis) error) (missing int, err error) {
	read := 0
	for offset := 0; ; offset += restPage {
		var page struct {
			Analyses []json.RawMessage `json:"analyses"`
			Total    int               `json:"totalAnalyses"`
		}
		path := "/studies/" + url.PathEscape(study) + "/analysis/paginated?analysisStates=PUBLISHED,UNPUBLISHED,SUPPRESSED&limit=" +
			strconv.Itoa(restPage) + "&offset=" + strconv.Itoa(offset)
		if err := s.get(ctx, path, &page); err != nil {
			return 0, err
		}
		analyses := make([]datamodel.ImportedAnalysis, len(page.Analyses))
		for i, body := range page.Analyses {
			if analyses[i], err = s.analysis(study, body); err != nil {
				return 0, err
			}
		}
		if err := each(analyses); err != nil {
			return 0, err
		}
		// A page may have fewer analyses than requested although it is not the last one: those without files or samples are missing from
		// it.
		if read += len(analyses); offset+restPage >= page.Total {
			return max(0, page.Total-read), nil
		}
	}
}

// analysis converts an analysis as Song returns it.
func (s *server) analysis(study string, body json.RawMessage) (datamodel.ImportedAnalysis, error) {
	var known struct {
		ID        string                    `json:"analysisId"`
		State     datamodel.AnalysisState   `json:"analysisState"`
		CreatedAt string                    `json:"createdAt"`
		UpdatedAt string                    `json:"updatedAt"`
		Type      datamodel.AnalysisTypeRef `json:"analysisType"`
		History   []struct {
			From datamodel.AnalysisState `json:"initialState"`
			To   datamodel.AnalysisState `json:"updatedState"`
			At   string                  `json:"updatedAt"`
		} `json:"analysisStateHistory"`
		Files []json.RawMessage `json:"files"`
	}
	members := map[string]json.RawMessage{}
	err := json.Unmarshal(body, &known)
	if err == nil {
		err = json.Unmarshal(body, &members)
	}
	if err != nil {
		return datamodel.ImportedAnalysis{}, core.WrapError(core.CodeUpstream, "an analysis of Song cannot be decoded", err)
	}
	for _, name := range []string{
		"analysisId", "analysisState", "createdAt", "updatedAt", "firstPublishedAt", "publishedAt", "analysisStateHistory", "analysisType", "files", "studyId",
	} {
		delete(members, name)
	}
	data, err := json.Marshal(members)
	if err != nil {
		return datamodel.ImportedAnalysis{}, core.WrapError(core.CodeInternal, "encoding an analysis", err)
	}
	a := datamodel.ImportedAnalysis{
		ID: known.ID, Study: study, State: known.State, Type: known.Type, CreatedAt: s.at(known.CreatedAt), UpdatedAt: s.at(known.UpdatedAt),
		Data: data, Files: known.Files,
	}
	for _, change := range known.History {
		a.History = append(a.History, datamodel.StateChange{From: change.From, To: change.To, At: s.at(change.At)})
	}
	return a, nil
}
