package partitionreplica

import "github.com/whippet-mq/whippet/libs/control"

// say tells people something of this partition.
func (p *Partition) say(e control.Event) {
	e.Groups = []string{control.GroupName(p.stream, p.topic, p.number)}
	p.replica.events.Say(e)
}

// damaged tells that what the disk holds can not be read.
func (p *Partition) damaged(why error) {
	p.say(control.Event{Kind: control.Damaged, Reason: why.Error()})
}
