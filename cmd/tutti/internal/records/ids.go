package records

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core/idlist"
)

// indexList requests the indexing of a list of ids.
func indexList(cmd *cobra.Command, c *client.Client, r *command.Remote, f indexFlags, target []string) error {
	list, err := readList(cmd, f.ids)
	if err != nil {
		return err
	}
	ctx, cancel := limited(cmd.Context(), f.timeout)
	defer cancel()
	organization := ""
	if len(target) == 2 {
		organization = target[1]
	}
	accepted, err := c.IndexIDs(ctx, target[0], organization, list)
	if err != nil {
		return notAccepted(ctx, cmd, f.timeout, err)
	}
	if f.wait {
		return waitForJob(ctx, cmd, c, r, accepted.JobID, f.timeout)
	}
	out := cmd.OutOrStdout()
	if r.JSON() {
		return command.PrintJSON(out, accepted.Raw)
	}
	ids := display.Count(int64(accepted.IDs)) + " ids of " + describeRequest(f, target)
	if accepted.Duplicates > 0 {
		ids += fmt.Sprintf(" (%s lines repeat one)", display.Count(int64(accepted.Duplicates)))
	}
	return display.KeyValues(out, "accepted", ids, "index", accepted.IndexName, "request", accepted.RequestID, "job", accepted.JobID,
		"follow", "tutti jobs show "+accepted.JobID+" --watch")
}

// readList reads a file, or stdin for -.
func readList(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		list, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("reading the ids: %w", err)
		}
		return list, nil
	}
	list, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the ids: %w", err)
	}
	return list, nil
}

func jobsIDsCommand(r *command.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ids <id>",
		Short: "List the ids of a job over a list, with their outcomes",
		Long: "List the ids of a job that tutti index --ids created, a line each: outcome, organization, id, reason and hint, separated by\n" +
			"tabs. With --output json a line is an object. Outcomes are indexed, removed (the repository has no such record to index),\n" +
			"excluded (by an exclusion rule), stale (the index had a newer version), mismatch (the record belongs to another organization), deadLettered, retrying (it\n" +
			"is retried outside of the job), queued, and skipped (the job ended before).",
		Example:           "  tutti jobs ids 0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10 | grep ^deadLettered",
		Args:              command.Arguments(1, "pass the id of one job"),
		ValidArgsFunction: command.CompleteIDs(r, 1, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			if !r.JSON() {
				return printIDs(cmd.Context(), cmd, c, args[0], true)
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			lines := json.NewEncoder(out)
			err = c.JobIDs(cmd.Context(), args[0], func(id idlist.ID) error { return lines.Encode(id) })
			if flushed := out.Flush(); err == nil {
				err = flushed
			}
			return err
		},
	}
}

// printIDs prints the ids of a job, or only those without a current document in the index.
func printIDs(ctx context.Context, cmd *cobra.Command, c *client.Client, job string, all bool) error {
	out := bufio.NewWriter(cmd.OutOrStdout())
	err := c.JobIDs(ctx, job, func(id idlist.ID) error {
		if !all && (id.Outcome == idlist.Indexed || id.Outcome == idlist.Stale) {
			return nil
		}
		cells := []string{string(id.Outcome), id.Organization, id.ID}
		if id.Reason+id.Hint != "" {
			cells = append(cells, id.Reason, id.Hint)
		}
		for i := range cells {
			cells[i] = printable.Line(cells[i])
		}
		_, err := fmt.Fprintln(out, strings.Join(cells, "\t"))
		return err
	})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}
