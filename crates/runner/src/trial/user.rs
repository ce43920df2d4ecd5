//! Playing the user of a case, message by message.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use agent::{Session, Turn};
use model::{Ending, SimulatedUser, Step, UserMessage};
use sandbox::Breakage;

use super::Attempt;
use super::clock::{Clock, Watched};
use crate::user::{Move, NoMove, Player};

impl Attempt<'_> {
    /// Returns a player for `user`.
    ///
    /// # Errors
    /// If there is no model for it, which a retry does not change.
    pub(super) fn player(&self, user: SimulatedUser) -> Result<Player, Breakage> {
        let (model, name) = self
            .shared
            .judging
            .user(&self.shared.settings, &user, &self.planned.directory)
            .map_err(|because| Breakage::environment(because).for_good())?;
        Ok(Player::new(model, name, user, Arc::clone(self.events.mask())))
    }

    /// Returns the next move of the user. Its time does not count as the agent's, and its usage is kept apart.
    pub(super) async fn next_move(
        &self,
        player: &mut Player,
        turn: &Turn,
        clock: &Clock<'_>,
    ) -> Watched<Result<Move, NoMove>> {
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
                    return match turn.record(leaves) {
                        Ok(()) => Ending::Finished,
                        Err(ending) => ending,
                    };
                }
                Watched::Done(Err(no_move)) => return no_move.ending(),
                Watched::Ended(ending) => return ending,
            };
            let index = turn.trace().user_messages.len() + 1;
            let tools = self.planned.case.tools.clone();
            let message = UserMessage { persona: player.persona().clone(), tools, ..UserMessage::text(text) };
            let said = Step::UserMessage { index, of: index, text: message.text.clone() };
            let ending = match turn.record(said) {
                Ok(()) => self.send(session, &message, turn, clock).await,
                Err(ending) => ending,
            };
            if !ending.goes_on() {
                return ending;
            }
        }
    }
}
