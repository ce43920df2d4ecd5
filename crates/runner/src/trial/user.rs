//! Plays the user in a case, message by message.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use agent::{Session, Turn};
use cassette::Sender;
use model::{Ending, SimulatedUser, Step, UserMessage};
use sandbox::Breakage;

use super::Attempt;
use super::clock::{Clock, Watched};
use crate::recorded_model::RecordedModel;
use crate::user::{Move, Player, PlayerError};

impl Attempt<'_> {
    /// Returns a player for `user`.
    ///
    /// # Errors
    /// Returns an error if there is no model for it, which a retry does not change.
    pub(super) fn player(&self, user: SimulatedUser) -> Result<Player, Breakage> {
        let (model, name) = self
            .shared
            .judging
            .player(&self.shared.settings, user.model.as_deref(), "simulate the user", &self.planned.directory)
            .map_err(|reason| Breakage::environment(reason).for_good())?;
        let tape = self.tape().filter(|_| self.shared.judging.player_is_on_network(user.model.as_deref()));
        let model = RecordedModel::wrap(model, tape, Sender::User);
        Ok(Player::new(model, name, user, Arc::clone(self.events.mask())))
    }

    /// Returns the user's next move. The time this takes does not count as the agent's, and the usage is kept
    /// separate.
    pub(super) async fn next_move(
        &self,
        player: &mut Player,
        turn: &Turn,
        clock: &Clock<'_>,
    ) -> Watched<Result<Move, PlayerError>> {
        let began = Instant::now();
        let next = clock.watch(player.next(turn.trace())).await;
        if let Watched::Done(_) = next {
            self.events.pause(began.elapsed());
        }
        if let Some(spent) = player.spent() {
            *self.user.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default() += spent;
        }
        next
    }

    /// Returns the message in which `player` says `text`.
    pub(super) fn said_by(&self, player: &Player, text: String) -> UserMessage {
        let tools = self.planned.case.tools.clone();
        UserMessage { persona: player.persona().clone(), tools, ..UserMessage::text(text) }
    }

    /// Sends the messages of `player`, as long as it has something to say and the agent answers.
    pub(super) async fn play_user(
        &self,
        mut player: Player,
        session: &mut dyn Session,
        turn: &mut Turn,
        clock: &Clock<'_>,
    ) -> Ending {
        loop {
            let text = match self.next_move(&mut player, turn, clock).await {
                Watched::Done(Ok(Move::Say(text))) => text,
                Watched::Done(Ok(Move::Leave(reason))) => {
                    let leaves = Step::Notice { from: "user".to_owned(), text: format!("leaves: {reason}") };
                    return turn.record(leaves).err().unwrap_or(Ending::Finished);
                }
                Watched::Done(Err(no_move)) => return no_move.ending(),
                Watched::Ended(ending) => return ending,
            };
            let message = self.said_by(&player, text);
            let ending = self.send(session, &message, 0, turn, clock).await;
            if !ending.goes_on() {
                return ending;
            }
        }
    }
}
