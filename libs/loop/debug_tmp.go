package loop

import "fmt"

func (g *Group) DebugState() string {
	return fmt.Sprintf("%s | peers{vote %+v birth %v voting %v asked %v known %d dead %b iso %v}", g.core.Debug(), g.peers.vote, g.peers.birth, g.peers.voting, g.peers.asked, g.peers.known, g.peers.dead, g.peers.isolated)
}
