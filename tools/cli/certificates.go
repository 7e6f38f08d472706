package cli

import (
	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/tools/certificates"
)

// certificatesCommand issues the certificates of a cluster whose planes are all encrypted.
func (a *app) certificatesCommand() *cobra.Command {
	var dir string
	var hosts []string
	cmd := &cobra.Command{
		Use: "certificates", Short: "Issue the certificates of a cluster that encrypts everything", Args: usage(cobra.NoArgs),
		Long: "Writes into --dir what is missing there: an authority (ca.pem, ca-key.pem), and certificates it signs for\n" +
			"processes among each other (peer.pem), front-doors (server.pem) and the control plane (nats.pem), each with its\n" +
			"key in the file with -key. What is there stays.",
		RunE: func(*cobra.Command, []string) error {
			written, err := certificates.Issue(dir, hosts)
			if err != nil {
				return err
			}
			out := list{}
			for _, path := range written {
				out = append(out, record{{"written", path}})
			}
			return a.print(out)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "certificates", "directory of the files")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "name or address under which clients reach the front-doors, beside localhost; may be repeated")
	return cmd
}
