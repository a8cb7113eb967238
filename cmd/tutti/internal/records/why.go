package records

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

// WhyCommand returns tutti why.
func WhyCommand() *cobra.Command {
	var r command.Remote
	const want = "pass a repository, an organization and the id of a record"
	cmd := &cobra.Command{
		Use:   "why <repository> <organization> <id>",
		Short: "Say why a record is or is not in the index",
		Long: "Say what the server knows of one record: what its repository returns now, its documents in the index and whether they\n" +
			"are the newest, the request that is pending, the jobs over its organization or over lists of ids with it, its\n" +
			"dead letters, and the next step. Nothing is changed. A part that cannot be read, or not within 2 s, says so and does not affect\n" +
			"the others. The sha256 of a document is that of its bytes without the repositories block that tutti adds.\n\n" + command.LocalTimes,
		Example: "  tutti why song.collab STUDY-1 ANALYSIS-1\n" +
			"  tutti why song.collab STUDY-1 ANALYSIS-1 --output json | jq -r .next",
		Args:              command.Arguments(3, want),
		ValidArgsFunction: command.CompleteIDs(&r, 1, repositoryCodes),
		RunE: func(cmd *cobra.Command, target []string) error {
			if len(target) < 3 {
				return command.Usage(cmd, want)
			}
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			t, err := c.Trace(cmd.Context(), target[0], target[1], target[2])
			return r.Print(cmd, t.Raw, err, func() error { return printTrace(cmd.OutOrStdout(), t.Trace) })
		},
	}
	r.AddFlags(cmd)
	return cmd
}

// printTrace prints a trace, one line for each part.
func printTrace(out io.Writer, t recordtrace.Trace) error {
	facts := []string{
		"record", t.Repository + " / " + t.Organization + " / " + t.ID,
		"upstream", partText(t.Upstream.Part, t.Upstream.State, ruleText(t.Upstream.ExcludedBy), t.Upstream.Reason, holderText(t.Upstream.PartOf), sourceText(t.Upstream)),
		"index", partText(t.Index.Part, "alias "+t.Index.Alias, comparisonText(t.Index.Comparison)),
	}
	for _, d := range t.Index.Documents {
		facts = append(facts, "document", documentLine(d))
	}
	facts = append(facts, "queue", partText(t.Queue.Part, requestText(t.Queue.Request), batchesText(t.Queue.Batches)))
	if t.Queue.Paused != "" {
		facts = append(facts, "paused", t.Queue.Paused)
	}
	facts = append(facts, "jobs", partText(t.Jobs.Part))
	for _, j := range t.Jobs.InProgress {
		facts = append(facts, "in progress", jobText(j))
	}
	if t.Jobs.LastEnded != nil {
		facts = append(facts, "last ended", jobText(*t.Jobs.LastEnded))
	}
	facts = append(facts, "dead letters", partText(t.DeadLetters.Part))
	for _, l := range t.DeadLetters.Letters {
		facts = append(facts, "dead letter", joined(l.ID, l.Reason, cmp.Or(l.Hint, l.EngineType), strconv.Itoa(l.Attempts)+" attempts", display.Time(l.LastAt)))
	}
	return display.KeyValues(out, append(facts, "next", t.Next)...)
}

// partText describes a part by its status, its details, and its error.
func partText(p recordtrace.Part, details ...string) string {
	took := fmt.Sprintf("%.0f ms", p.TookMillis)
	if p.Status == recordtrace.StatusError || p.Status == recordtrace.StatusUnknown {
		return joined(p.Status, p.Error, took)
	}
	return joined(append(append([]string{p.Status}, details...), took)...)
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	var given []string
	for _, text := range texts {
		if text != "" {
			given = append(given, text)
		}
	}
	return strings.Join(given, ", ")
}

func sourceText(u recordtrace.Upstream) string {
	if u.SHA256 == "" {
		return ""
	}
	return display.Count(int64(u.Bytes)) + " bytes, sha256 " + u.SHA256
}

// ruleText describes the exclusion rule of a record, "" for none.
func ruleText(rule *core.Exclusion) string {
	if rule == nil {
		return ""
	}
	return "by " + rule.ID + " in exclude." + rule.List
}

// holderText names the record that contains a record, "" for none.
func holderText(id string) string {
	if id == "" {
		return ""
	}
	return "part of " + id
}

// comparisonText describes how the index compares with the upstream.
func comparisonText(c recordtrace.Comparison) string {
	switch c {
	case recordtrace.ComparisonEqual:
		return "equal to the repository"
	case recordtrace.ComparisonDiffers:
		return "differs from the repository"
	case recordtrace.ComparisonUnknown:
		return "comparison with the repository unknown"
	default:
		return ""
	}
}

func documentLine(d recordtrace.Document) string {
	if !d.Stored {
		return joined(d.ID, "not stored", hashText("expected sha256", d.ExpectedSHA256))
	}
	comparison := string(d.Comparison)
	if d.Content == recordtrace.ComparisonEqual && d.Comparison != recordtrace.ComparisonEqual {
		comparison = "differs in the repositories block only"
	}
	text := joined(d.ID, comparison, d.State, display.Count(int64(d.Bytes))+" bytes", hashText("sha256", d.SHA256), "version "+strconv.FormatInt(int64(d.Version), 10))
	if d.WrittenFor != nil {
		text += ", requested " + display.Time(*d.WrittenFor)
	}
	if d.PhysicalIndex != "" {
		text += ", in " + d.PhysicalIndex
	}
	if d.ExpectedSHA256 != "" && d.ExpectedSHA256 != d.SHA256 {
		text += ", " + hashText("expected sha256", d.ExpectedSHA256)
	}
	if d.Expected != nil && !*d.Expected {
		text += ", not of the record any more"
	}
	return text
}

// hashText describes a hash, "" for none.
func hashText(name, hash string) string {
	if hash == "" {
		return ""
	}
	return name + " " + hash
}

func requestText(r *recordtrace.Request) string {
	if r == nil {
		return ""
	}
	text := joined(string(r.Kind), "cause "+string(r.Cause), strconv.Itoa(r.Attempts)+" attempts", "since "+display.Time(r.ReceivedAt))
	if !r.NotBefore.IsZero() {
		text += ", not before " + display.Time(r.NotBefore)
	}
	return text
}

func batchesText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + " batches that may name it"
}

func jobText(j recordtrace.Job) string {
	scope := string(j.Scope)
	if j.Outcome != "" {
		scope = "list of ids, this one " + string(j.Outcome)
	}
	text := joined(j.ID, scope, string(j.State), "queued "+display.Time(j.QueuedAt))
	if j.OrganizationState != "" {
		text += ", its organization " + string(j.OrganizationState)
	}
	if j.ErrorCode != "" {
		text += " (" + j.ErrorCode + ")"
	}
	if j.EndedAt != nil {
		text += ", ended " + display.Time(*j.EndedAt)
	}
	return text
}
