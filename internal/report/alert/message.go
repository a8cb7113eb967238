package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// message is a message in the format json.
type message struct {
	ID    string `json:"id"`
	Event Kind   `json:"event"`
	Text  string `json:"text"`
	Summary
}

// newMessage returns the message with an id about the events of a summary.
func newMessage(id string, kind Kind, s Summary, publicURL string) message {
	s.Examples = slices.Clone(s.Examples)
	for i := range s.Examples {
		switch e := &s.Examples[i]; {
		case e.DeadLetterID != "":
			e.Link = publicURL + "/console/dead-letters/" + url.PathEscape(e.DeadLetterID)
		case e.JobID != "":
			e.Link = publicURL + "/console/jobs/" + url.PathEscape(e.JobID)
		}
	}
	return message{ID: id, Event: kind, Text: headline(kind, s), Summary: s}
}

// headline says in a sentence what has happened.
func headline(kind Kind, s Summary) string {
	noun := map[Kind][2]string{
		JobFailed:         {"job failed", "jobs failed"},
		JobPartial:        {"job ended partial", "jobs ended partial"},
		RepositoryPaused:  {"repository was paused", "pauses of repositories"},
		RepositoryResumed: {"pause of a repository has ended", "pauses of repositories have ended"},
		DeadLetters:       {"new dead letter", "new dead letters"},
		Drift:             {"comparison has found differences", "comparisons have found differences"},
	}[kind]
	if kind == kindTest {
		return "This is a test of the alerts of tutti."
	}
	form := noun[1]
	if s.Count == 1 {
		form = noun[0]
	}
	return fmt.Sprintf("%d %s: %s", s.Count, form, byRepository(s.Repositories))
}

// byRepository lists counts, the largest first, at most ten.
func byRepository(counts map[string]int64) string {
	const most = 10
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, code := range codes[:min(len(codes), most)] {
		name := cmp.Or(code, "no repository")
		if len(codes) > 1 {
			name = fmt.Sprintf("%s (%d)", name, counts[code])
		}
		parts = append(parts, name)
	}
	if len(codes) > most {
		parts = append(parts, fmt.Sprintf("%d more", len(codes)-most))
	}
	return strings.Join(parts, ", ")
}

// encode returns the body of the message in a format.
func (m message) encode(format Format) ([]byte, error) {
	var body any = m
	if format == FormatSlack {
		body = m.slack()
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fmt.Errorf("encoding an alert: %w", err)
	}
	return []byte(strings.TrimSuffix(out.String(), "\n")), nil
}

// Limits of Slack's blocks, in characters (https://docs.slack.dev/reference/block-kit/blocks/section-block): 3,000 for a text, of which
// an example's texts take at most these, escaped.
const (
	slackText  = 2900
	slackID    = 256
	slackExtra = 700
)

type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string         `json:"type"`
	Text *slackTextPart `json:"text,omitempty"`
}

type slackTextPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func section(text string) slackBlock {
	return slackBlock{Type: "section", Text: &slackTextPart{Type: "mrkdwn", Text: text}}
}

// slack returns the message as the body of one of Slack's incoming webhooks: a block for the headline and one for each example.
func (m message) slack() slackMessage {
	title := slackEscape(m.Text, slackText)
	head := "*" + title + "*"
	if m.Count > 1 {
		head += "\n" + m.FirstAt.UTC().Format(time.RFC3339) + " to " + m.LastAt.UTC().Format(time.RFC3339)
	}
	blocks := []slackBlock{section(head)}
	for _, e := range m.Examples {
		blocks = append(blocks, section(e.slack()))
	}
	if more := m.Count - int64(len(m.Examples)); more > 0 && len(m.Examples) > 0 {
		blocks = append(blocks, section(fmt.Sprintf("and %d more", more)))
	}
	return slackMessage{Text: title, Blocks: blocks}
}

// slack returns an example as a text of less than 3,000 characters.
func (e Event) slack() string {
	var what []string
	for _, id := range []string{e.Repository, e.Organization, e.RecordID} {
		if id != "" {
			what = append(what, "`"+slackEscape(strings.ReplaceAll(id, "`", "'"), slackID)+"`")
		}
	}
	lines := []string{strings.Join(what, " ")}
	for _, extra := range []string{e.Reason, e.Hint} {
		if extra != "" {
			lines = append(lines, slackEscape(extra, slackExtra))
		}
	}
	name := "job " + e.JobID
	if e.DeadLetterID != "" {
		name = "dead letter " + e.DeadLetterID
	}
	switch name = slackEscape(name, slackID); {
	case strings.HasPrefix(e.Link, "http") && len(e.Link) < slackExtra:
		lines = append(lines, "<"+slackEscape(strings.ReplaceAll(e.Link, "|", "%7C"), slackExtra)+"|"+name+">")
	case e.Link != "":
		lines = append(lines, name)
	}
	return strings.Join(lines, "\n")
}

// slackEscape escapes the control characters of Slack's markup, and replaces those of lines, in at most limit bytes.
func slackEscape(s string, limit int) string {
	const ellipsis = "…"
	var out strings.Builder
	fits := 0 // the bytes that leave room for the ellipsis
	for _, r := range s {
		switch {
		case r == '&':
			out.WriteString("&amp;")
		case r == '<':
			out.WriteString("&lt;")
		case r == '>':
			out.WriteString("&gt;")
		case r < ' ' || r == 0x7f:
			out.WriteByte(' ')
		default:
			out.WriteRune(r)
		}
		if out.Len() > limit {
			return out.String()[:fits] + ellipsis
		}
		if out.Len() <= limit-len(ellipsis) {
			fits = out.Len()
		}
	}
	return out.String()
}
