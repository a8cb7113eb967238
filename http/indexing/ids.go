package indexing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

const (
	contentTypeText = "text/plain"
	// maxIDLine is the maximum length of a line of a list: an organization and an id, with every byte escaped.
	maxIDLine = 8 << 10
)

// acceptedList is the body of the 202 of a list of ids.
type acceptedList struct {
	accepted
	// IDs counts the distinct ids, Duplicates the lines that repeat one.
	IDs        int `json:"ids"`
	Duplicates int `json:"duplicates"`
}

// ids handles a trigger for a list of ids. The whole body is checked before anything is stored.
func (t triggers) ids(targetOf func(*http.Request) (target, error)) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, err := targetOf(r)
		if err != nil {
			return err
		}
		body, err := api.ReadBody(r)
		if err != nil {
			return err
		}
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		if len(bytes.TrimSpace(body)) == 0 {
			return &core.Error{Code: core.CodeInvalid, Message: "the list of ids is empty", Hint: "send one id a line"}
		}
		mediaType, err := media.Declared(r.Header, contentTypeText, contentTypeNDJSON)
		if err != nil {
			return err
		}
		list := idList{organization: at.organization, json: mediaType == contentTypeNDJSON, seen: make(map[core.RecordKey]struct{})}
		if err := list.read(body); err != nil {
			return err
		}
		requestID := api.RequestIDOf(r)
		job, err := t.ingest.IDs(r.Context(), at.repository, at.organization, list.parts, requestID)
		if err != nil {
			return err
		}
		locateJob(w, t.basePath, job.ID)
		return api.WriteJSON(w, http.StatusAccepted, acceptedList{
			accepted: accepted{Successful: true, IndexName: job.IndexName, RequestID: requestID, JobID: job.ID},
			IDs:      len(list.seen), Duplicates: list.duplicates,
		})
	}
}

// idList is a list of ids that is being read.
type idList struct {
	// organization is the one of the path, "" if the lines name theirs.
	organization string
	json         bool

	parts      []idlist.List
	byName     map[string]int // organizations, as positions in parts
	seen       map[core.RecordKey]struct{}
	duplicates int
}

// read reads all lines of a body; CodeInvalid or CodeTooLarge, with the number of the line, for the first invalid one.
func (l *idList) read(body []byte) error {
	for number := 1; len(body) > 0; number++ {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := l.add(line); err != nil {
			code := core.CodeOf(err)
			return &core.Error{
				Code: code, Message: fmt.Sprintf("line %d: %s", number, core.MessageOf(err)), Err: err,
				Hint: "nothing was requested; " + l.format(),
			}
		}
	}
	return nil
}

// format describes a line, for a hint.
func (l *idList) format() string {
	switch {
	case l.json && l.organization != "":
		return `a line is an object {"id": "…"}`
	case l.json:
		return `a line is an object {"organization": "…", "id": "…"}`
	case l.organization != "":
		return "a line is an id"
	default:
		return "a line is an organization, a tab and an id"
	}
}

// add adds a line, unless its record is already in the list.
func (l *idList) add(line []byte) error {
	if len(line) > maxIDLine {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("it has %d bytes, the limit is %d", len(line), maxIDLine))
	}
	key, err := l.parse(line)
	if err != nil {
		return err
	}
	if err := core.ValidID("organization", key.Organization); err != nil {
		return err
	}
	if err := core.ValidID("id", key.ID); err != nil {
		return err
	}
	if _, twice := l.seen[key]; twice {
		l.duplicates++
		return nil
	}
	if len(l.seen) == idlist.MaxIDs {
		return core.NewError(core.CodeTooLarge, fmt.Sprintf("a list has at most %d ids", idlist.MaxIDs))
	}
	at, known := l.byName[key.Organization]
	if !known {
		if len(l.parts) == idlist.MaxOrganizations {
			return core.NewError(core.CodeTooLarge, fmt.Sprintf("a list has ids of at most %d organizations", idlist.MaxOrganizations))
		}
		if l.byName == nil {
			l.byName = make(map[string]int)
		}
		at = len(l.parts)
		l.byName[key.Organization] = at
		l.parts = append(l.parts, idlist.List{Organization: key.Organization})
	}
	key.Organization = l.parts[at].Organization
	l.seen[key] = struct{}{}
	l.parts[at].IDs = append(l.parts[at].IDs, key.ID)
	return nil
}

func (l *idList) parse(line []byte) (core.RecordKey, error) {
	if l.json {
		return l.parseObject(line)
	}
	text := string(line)
	if l.organization != "" {
		return core.RecordKey{Organization: l.organization, ID: text}, nil
	}
	organization, id, separated := strings.Cut(text, "\t")
	if !separated {
		return core.RecordKey{}, core.NewError(core.CodeInvalid, "no tab separates an organization and an id")
	}
	return core.RecordKey{Organization: organization, ID: id}, nil
}

func (l *idList) parseObject(line []byte) (core.RecordKey, error) {
	var object struct {
		Organization *string `json:"organization"`
		ID           string  `json:"id"`
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&object)
	if _, end := decoder.Token(); err != nil || !errors.Is(end, io.EOF) {
		return core.RecordKey{}, core.NewError(core.CodeInvalid, "it is not an object with the members organization and id")
	}
	key := core.RecordKey{Organization: l.organization, ID: object.ID}
	if object.Organization == nil {
		return key, nil
	}
	if l.organization != "" && *object.Organization != l.organization {
		return key, core.NewError(core.CodeInvalid, "its organization is not the one of the path")
	}
	key.Organization = *object.Organization
	return key, nil
}

// ids streams the ids of a job with their outcomes, one per line, in the order of their organizations' names and of the list. On an
// error it aborts the connection, because the status was already sent.
func (j jobs) ids(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := CheckJob(r, j.port, id); err != nil {
		return err
	}
	job, err := j.port.Get(r.Context(), id)
	if err != nil {
		return err
	}
	var runs []core.OrganizationRun
	if job.Scope == core.ScopeIDs {
		if runs, err = j.port.Organizations(r.Context(), id); err != nil {
			return fmt.Errorf("reading the organizations of a job: %w", err)
		}
	}
	w.Header().Set("Content-Type", contentTypeNDJSON)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	unprocessed := idlist.Queued
	if job.State.Final() {
		unprocessed = idlist.Skipped
	}
	for i := range runs {
		if err := j.writeIDs(w, r, id, &runs[i], unprocessed); err != nil {
			return api.AbortResponse(r, err)
		}
	}
	return nil
}

// writeIDs writes the ids of one organization.
func (j jobs) writeIDs(w http.ResponseWriter, r *http.Request, id string, run *core.OrganizationRun, unprocessed idlist.Outcome) error {
	control := http.NewResponseController(w)
	for page := 0; run.LastPage != nil && page <= *run.LastPage; page++ {
		ids, err := j.lists.IDPage(r.Context(), id, run.Organization, page)
		if err != nil {
			return fmt.Errorf("reading the ids of a job: %w", err)
		}
		// Writers of tests may support neither deadlines nor flushing.
		_ = control.SetWriteDeadline(time.Now().Add(api.LineTimeout))
		for _, listed := range ids {
			listed.Organization = run.Organization
			if listed.Outcome == "" {
				listed.Outcome = unprocessed
			}
			if err := api.EncodeJSON(w, listed); err != nil {
				return err
			}
		}
		_ = control.Flush()
	}
	return r.Context().Err()
}
