package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tutti/internal/app/check"
	"tutti/internal/core"
)

func writeFindings(w io.Writer, found check.Report, output string) error {
	if output == OutputText {
		return found.WriteText(w)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	return PrintJSON(w, text)
}

// ReportFindings writes the findings to stdout, and returns an error when one of them failed.
func ReportFindings(cmd *cobra.Command, found check.Report, output string) error {
	if err := writeFindings(cmd.OutOrStdout(), found, output); err != nil {
		return err
	}
	if !found.OK {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("%d of %d findings failed", found.Failed(), len(found.Findings)))
	}
	return nil
}
