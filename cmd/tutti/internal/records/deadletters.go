package records

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/jsontext"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// maxDeadLetters is the largest limit that the server accepts for a list of dead letters.
const maxDeadLetters = 1000

// DeadLettersCommand returns tutti dead-letters.
func DeadLettersCommand() *cobra.Command {
	var r command.Remote
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List, show, retry and discard dead letters",
		Long: "A dead letter is a record that the server could not index, with the reason, the engine's error and as much of the\n" +
			"document as is stored; or a notification that could not be parsed. It is removed when the record is indexed later, by\n" +
			"a retry, a notification or a run.",
		Example: "  tutti dead-letters list --reason rejected\n" +
			"  tutti dead-letters show ID\n" +
			"  tutti dead-letters retry --all --repository song.collab\n" +
			"  tutti dead-letters list --export > letters.ndjson",
	}
	r.AddFlags(cmd)
	cmd.AddCommand(deadLettersListCommand(&r), deadLettersShowCommand(&r), deadLettersRetryCommand(&r), deadLettersDiscardCommand(&r))
	return cmd
}

// addDeadLetterFilter adds the flags that select dead letters to cmd.
func addDeadLetterFilter(cmd *cobra.Command, r *command.Remote, f *core.DeadLetterFilter) {
	cmd.Flags().StringVar(&f.Repository, "repository", "", "only dead letters of the repository with this `code`")
	cmd.Flags().StringVar(&f.Organization, "organization", "", "only dead letters of the organization with this `id`")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "only dead letters with this `reason`: "+strings.Join(core.DeadLetterReasons(), ", "))
	completeRepository(cmd, r)
	command.Complete(cmd, "reason", core.DeadLetterReasons()...)
}

func deadLettersListCommand(r *command.Remote) *cobra.Command {
	var filter core.DeadLetterFilter
	var export bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the newest first",
		Long: "List dead letters, the newest first and without their documents. DETAIL is the engine's error type, else the hint.\n\n" +
			"With --export, write all of them to stdout, with their documents, one JSON object per line. The exit code is 1 if\n" +
			"the export ends early.\n\n" + command.LocalTimes,
		Example: "  tutti dead-letters list --repository song.collab --reason rejected\n" +
			"  tutti dead-letters list --export | jq -r .engineReason | sort | uniq -c",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if export && (filter.Limit != 0 || filter.Cursor != "") {
				return command.Usage(cmd, "--export writes all dead letters and cannot be combined with --limit or --cursor")
			}
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			if export {
				return c.ExportDeadLetters(cmd.Context(), filter, cmd.OutOrStdout())
			}
			page, err := c.DeadLetters(cmd.Context(), filter)
			return r.Print(cmd, page.Raw, err, func() error { return printDeadLetters(cmd, page) })
		},
	}
	addDeadLetterFilter(cmd, r, &filter)
	flags := cmd.Flags()
	flags.Var(&command.Number{Target: &filter.Limit, Most: maxDeadLetters}, "limit", "list at most this `number`, from 1 to 1000 (default 50)")
	flags.StringVar(&filter.Cursor, "cursor", "", "continue a list from the `cursor` that it printed")
	flags.BoolVar(&export, "export", false, "write all of them with their documents, one JSON object per line")
	command.Complete(cmd, "limit")
	command.Complete(cmd, "cursor")
	return cmd
}

func printDeadLetters(cmd *cobra.Command, page client.DeadLetterPage) error {
	out := cmd.OutOrStdout()
	if len(page.DeadLetters) == 0 {
		_, err := fmt.Fprintln(out, "no dead letters")
		return err
	}
	table := display.NewTable("ID", "REASON", "ABOUT", ">ATTEMPTS", "LAST", "DETAIL")
	for _, l := range page.DeadLetters {
		table.Row(l.ID, l.Reason, subjectOf(l.DeadLetter), strconv.Itoa(l.Attempts), display.Time(l.LastAt), cmp.Or(l.EngineType, l.Hint))
	}
	if err := table.Write(out); err != nil {
		return err
	}
	return printMore(cmd, page.NextCursor)
}

// subjectOf returns the repository, organization and record of a dead letter, or its source and position.
func subjectOf(l core.DeadLetter) string {
	var parts []string
	for _, part := range []string{l.Repository, l.Organization, l.RecordID} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 && l.Source != "" {
		parts = append(parts, strings.TrimSpace(l.Source+" "+l.Position))
	}
	return strings.Join(parts, " / ")
}

func deadLettersShowCommand(r *command.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "show <id>",
		Short: "Show a dead letter with its document",
		Long: "Show why a record could not be indexed: the reason, a hint, the engine's error, the number of attempts, and at most\n" +
			"256 KiB of the document.\n\n" + command.LocalTimes,
		Example:           "  tutti dead-letters show ID\n  tutti dead-letters show ID --output json | jq .document",
		Args:              command.Arguments(1, "pass the id of one dead letter"),
		ValidArgsFunction: command.CompleteIDs(r, 1, deadLetterIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			letter, err := c.DeadLetter(cmd.Context(), args[0])
			return r.Print(cmd, letter.Raw, err, func() error { return printDeadLetter(cmd.OutOrStdout(), letter) })
		},
	}
}

func printDeadLetter(out io.Writer, l client.DeadLetter) error {
	engine := l.EngineType
	if l.EngineReason != "" {
		engine = strings.TrimPrefix(engine+": "+l.EngineReason, ": ")
	}
	if err := display.KeyValues(out,
		"id", l.ID, "repository", l.Repository, "organization", l.Organization, "record", l.RecordID, "reason", l.Reason,
		"hint", l.Hint, "engine", engine, "attempts", strconv.Itoa(l.Attempts), "first", display.Time(l.FirstAt),
		"last", display.Time(l.LastAt), "job", l.JobID, "source", l.Source, "position", l.Position, "document", documentSummary(l),
	); err != nil {
		return err
	}
	text := documentText(l)
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%s\n", text)
	return err
}

// documentSummary returns the size and the hash of the document, and how much of it is stored.
func documentSummary(l client.DeadLetter) string {
	if l.Size == 0 {
		return ""
	}
	text := display.Count(int64(l.Size)) + " bytes, sha256 " + l.SHA256
	switch {
	case l.Truncated && l.DocumentText == "" && len(l.DocumentBase64) == 0:
		text += ", not stored"
	case l.Truncated:
		text += ", only the start is stored"
	}
	return text
}

// documentText returns the document as text: JSON indented unless it nests too deeply, text unchanged, other bytes as a hex dump.
func documentText(l client.DeadLetter) string {
	switch {
	case len(l.Document) > 0:
		text, ok := jsontext.Indented(l.Document)
		if !ok {
			text = string(l.Document)
		}
		return printable.Lines(text)
	case l.DocumentText != "":
		return printable.Lines(l.DocumentText)
	case len(l.DocumentBase64) > 0:
		return strings.TrimSuffix(hex.Dump(l.DocumentBase64), "\n")
	default:
		return ""
	}
}

// retryFlags are the flags of tutti dead-letters retry.
type retryFlags struct {
	all, wait bool
	timeout   time.Duration
	filter    core.DeadLetterFilter
}

func deadLettersRetryCommand(r *command.Remote) *cobra.Command {
	var f retryFlags
	cmd := &cobra.Command{
		Use:   "retry <id>… | --all",
		Short: "Retry records that became dead letters",
		Long: "Ask the server to fetch the records again and index them. The stored documents are not used. The server answers when\n" +
			"the requests are stored; a dead letter is removed once its record is indexed, so list them again a moment later.\n\n" +
			"If one of several cannot be retried, the others still are, an error says what to do instead, and the exit code is 1.\n\n" +
			"With --all, a job retries every dead letter, or those of --repository, --organization and --reason, independently of this command. While\n" +
			"it has not ended, another retry of the same dead letters returns the same job. With --wait the command waits until the\n" +
			"job has ended and shows its progress on stderr; ctrl-c and --wait-timeout end the wait, not the job.\n\n" +
			"Exit code of --all: 0 when the request was accepted, with --wait when the job succeeded; 2 when some dead letters cannot\n" +
			"be retried; 1 when none can, when the job was cancelled, and on every error.",
		Example: "  tutti dead-letters retry ID\n" +
			"  tutti dead-letters retry --all --reason rejected --wait",
		ValidArgsFunction: command.CompleteIDs(r, math.MaxInt, deadLetterIDs),
		RunE: func(cmd *cobra.Command, ids []string) error {
			switch {
			case f.all && len(ids) > 0:
				return command.Usage(cmd, "--all and ids cannot be combined")
			case !f.all && len(ids) == 0:
				return command.Usage(cmd, "pass the ids of dead letters, or --all")
			case !f.all && f.filter != core.DeadLetterFilter{}:
				return command.Usage(cmd, "--repository, --organization and --reason require --all")
			case !f.all && f.wait:
				return command.Usage(cmd, "--wait requires --all")
			case f.timeout != 0 && !f.wait, f.timeout < 0:
				return command.Usage(cmd, "--wait-timeout requires --wait and a positive duration")
			}
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			if f.all {
				return retryAll(cmd, c, r, f)
			}
			return eachDeadLetter(cmd, ids, func(id string) error { return retryDeadLetter(cmd, c, r, id) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "retry all dead letters")
	flags.BoolVar(&f.wait, "wait", false, "with --all, wait until the job has ended, and show its progress")
	flags.DurationVar(&f.timeout, "wait-timeout", 0, "with --wait, exit 1 after this `duration` if the job has not ended; 0 waits without limit")
	addDeadLetterFilter(cmd, r, &f.filter)
	return cmd
}

func retryAll(cmd *cobra.Command, c *client.Client, r *command.Remote, f retryFlags) error {
	ctx, cancel := limited(cmd.Context(), f.timeout)
	defer cancel()
	accepted, err := c.RetryAll(ctx, f.filter)
	if err != nil {
		return notAccepted(ctx, cmd, f.timeout, err)
	}
	if f.wait {
		return waitForJob(ctx, cmd, c, r, accepted.JobID, f.timeout)
	}
	if r.JSON() {
		return command.PrintJSON(cmd.OutOrStdout(), accepted.Raw)
	}
	about := display.ScopeOf(client.Job{
		Scope: core.ScopeRetry, Repository: f.filter.Repository, Organization: f.filter.Organization, Reason: f.filter.Reason,
	})
	return display.KeyValues(cmd.OutOrStdout(), "accepted", about, "request", accepted.RequestID, "job", accepted.JobID,
		"follow", "tutti jobs show "+accepted.JobID+" --watch")
}

func retryDeadLetter(cmd *cobra.Command, c *client.Client, r *command.Remote, id string) error {
	retried, err := c.Retry(cmd.Context(), id)
	if err != nil {
		return err
	}
	if r.JSON() {
		return command.PrintJSON(cmd.OutOrStdout(), retried.Raw)
	}
	about := subjectOf(core.DeadLetter{
		Repository: retried.Repository, Organization: retried.Organization, RecordID: retried.RecordID,
	})
	_, err = fmt.Fprintln(cmd.OutOrStdout(), printable.Line("retried "+id+", "+about))
	return err
}

func deadLettersDiscardCommand(r *command.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "discard <id>…",
		Short: "Remove dead letters permanently",
		Long: "Remove dead letters permanently, without a retry. If one of several ids cannot be removed, the others still are, and\n" +
			"the exit code is 1. With --output json, a line {\"id\":…,\"discarded\":true} is written for each removed dead letter.",
		Example:           "  tutti dead-letters discard ID",
		Args:              command.Arguments(math.MaxInt, "pass the ids of dead letters"),
		ValidArgsFunction: command.CompleteIDs(r, math.MaxInt, deadLetterIDs),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			return eachDeadLetter(cmd, ids, func(id string) error {
				if err := c.Discard(cmd.Context(), id); err != nil {
					return err
				}
				if !r.JSON() {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), printable.Line("discarded "+id))
					return err
				}
				line, err := json.Marshal(map[string]any{"id": id, "discarded": true})
				if err != nil {
					return fmt.Errorf("writing the answer: %w", err)
				}
				return command.PrintJSON(cmd.OutOrStdout(), line)
			})
		},
	}
}

// eachDeadLetter calls do for each id. With several ids, it prints an error and continues, unless the server is unavailable or
// the command was interrupted.
func eachDeadLetter(cmd *cobra.Command, ids []string, do func(id string) error) error {
	if len(ids) == 1 {
		return do(ids[0])
	}
	failed := 0
	for _, id := range ids {
		err := do(id)
		if err == nil {
			continue
		}
		if cmd.Context().Err() != nil || core.Retryable(err) {
			return fmt.Errorf("%s: %w", id, err)
		}
		failed++
		command.PrintError(cmd.ErrOrStderr(), fmt.Errorf("%s: %w", id, err))
	}
	if failed > 0 {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}
