//! Playing the user of a case, message by message.

use std::time::Instant;

use model::{Aside, Ending, SimulatedUser, Step, UserMessage};

use super::Attempt;
use super::clock::{Clock, Watched};
use crate::session::Session;
use crate::user::{Move, Player};
use crate::witness::{Flow, Turn};

impl Attempt<'_> {
    /// Somebody who plays `user`, or why there is nobody.
    pub(super) fn player(&self, user: SimulatedUser) -> Result<Player, String> {
        let (model, name) = self.shared.judging.user(&self.shared.settings, &user)?;
        Ok(Player::new(model, name, user))
    }

    /// Has a model say what the user says, as long as it has something to say and the agent answers. What that took is
    /// added to `spent`. The time in which the user thinks is not the agent's.
    pub(super) async fn play_user(
        &self,
        user: &SimulatedUser,
        session: &mut dyn Session,
        turn: &mut Turn,
        clock: &Clock<'_>,
        spent: &mut Option<Aside>,
    ) -> Ending {
        let mut player = match self.player(user.clone()) {
            Ok(player) => player,
            Err(because) => return Ending::ProviderFailed { because },
        };
        let ending = loop {
            let began = Instant::now();
            let next = match clock.watch(player.next(turn.trace())).await {
                Watched::Done(next) => next,
                Watched::Ended(ending) => break ending,
            };
            self.line.pause(began.elapsed());
            let text = match next {
                Ok(Move::Say(text)) => text,
                Ok(Move::Leave(reason)) => {
                    let leaves = Step::Notice { from: "user".to_owned(), text: format!("leaves: {reason}") };
                    break match turn.record(leaves) {
                        Flow::Go => Ending::Finished,
                        Flow::Stop(ending) => ending,
                    };
                }
                Err(error) => break Ending::ProviderFailed { because: error.to_string() },
            };
            let index = turn.trace().user_messages.len() + 1;
            let message = UserMessage { persona: user.persona.clone(), ..UserMessage::text(text) };
            let said = Step::UserMessage { index, of: index, text: message.text.clone() };
            let ending = match turn.record(said) {
                Flow::Go => self.send(session, &message, turn, clock).await,
                Flow::Stop(ending) => ending,
            };
            if !ending.goes_on() {
                break ending;
            }
        };
        if player.spent().requests > 0 {
            *spent.get_or_insert_default() += player.spent();
        }
        ending
    }
}
