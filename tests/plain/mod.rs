//! A second implementation of the rules, all clauses and all switches, that
//! sows one seed at a time on the drawn board; and what it is compared on.

use std::hash::{DefaultHasher, Hash, Hasher};

use katro::{
    Direction, DirectionChoice, Game, Hole, Lap, LastSeedSteps, MAX_SEEDS, Player, Position, Rules,
};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Seeds thrown into some of the holes, few or many, spread over both sides or
/// nearly all on one; either player to move and bound to any direction that the
/// rules allow. The game may be over.
pub(crate) fn random_position(game: &Game, random: &mut Random) -> Position {
    let holes = game.rules().holes();
    let mut grid = vec![0; holes];
    let mut throw = |random: &mut Random, first: usize, number: usize, most: usize| {
        let targets: Vec<usize> =
            (0..=random.below(number)).map(|_| first + random.below(number)).collect();
        for _ in 0..=random.below(most) {
            grid[random.choose(&targets)] += 1;
        }
    };
    let rich = random.below(2) * holes / 2;
    let poor = holes / 2 - rich;
    match random.below(5) {
        0 | 1 => throw(random, 0, holes, 20),
        2 => throw(random, 0, holes, MAX_SEEDS),
        // A last seed or two, against few or many.
        3 => {
            throw(random, poor, holes / 2, 1);
            throw(random, rich, holes / 2, 20);
        }
        _ => {
            throw(random, poor, holes / 2, 2);
            throw(random, rich, holes / 2, MAX_SEEDS - 2);
        }
    }
    let to_move = Player::from_index(random.below(2) as i64).unwrap();
    let position = game.position(&grid, to_move).unwrap();
    if !game.rules().binds() {
        return position;
    }
    let directions = [None, Some(Direction::Regular), Some(Direction::Mirrored)];
    let bound = [random.choose(&directions), random.choose(&directions)];
    game.bind(&position, bound).unwrap()
}

/// The legal actions.
pub(crate) fn actions(game: &Game, position: &Position) -> Vec<i64> {
    game.legal(position).iter().map(|action| action as i64).collect()
}

pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The drawn board as rows of numbers.
pub(crate) type Grid = Vec<Vec<u32>>;

pub(crate) fn rows_of(game: &Game, position: &Position) -> Grid {
    let grid = game.grid(position);
    grid.chunks(game.rules().columns())
        .map(|row| row.iter().map(|&seeds| seeds.into()).collect())
        .collect()
}

/// Row and column of the drawn board.
pub(crate) type Place = (usize, usize);

/// What an action stands for.
#[derive(Clone, Copy)]
enum Choice {
    Sow(Place, Direction),
    Step(Place, Place),
}

/// A position, played on in the plainest way.
#[derive(Clone)]
pub(crate) struct Plain {
    rules: Rules,
    pub(crate) grid: Grid,
    pub(crate) to_move: Player,
    /// By player (V2).
    pub(crate) bound: [Option<Direction>; 2],
}

impl Plain {
    pub(crate) fn of(game: &Game, position: &Position) -> Plain {
        Plain {
            rules: *game.rules(),
            grid: rows_of(game, position),
            to_move: position.to_move(),
            bound: [Player::South, Player::North].map(|player| position.bound(player)),
        }
    }

    fn columns(&self) -> usize {
        self.grid[0].len()
    }

    /// The rows of a player, outer row first.
    pub(crate) fn rows(&self, player: Player) -> Vec<usize> {
        match player {
            Player::North => (0..self.grid.len() / 2).collect(),
            Player::South => (self.grid.len() / 2..self.grid.len()).rev().collect(),
        }
    }

    fn seeds(&self, (row, column): Place) -> u32 {
        self.grid[row][column]
    }

    fn lift(&mut self, (row, column): Place) -> u32 {
        std::mem::take(&mut self.grid[row][column])
    }

    fn drop(&mut self, (row, column): Place, seeds: u32) {
        self.grid[row][column] += seeds;
    }

    fn holds_seeds(&self, row: usize) -> bool {
        self.grid[row].iter().any(|&seeds| seeds > 0)
    }

    fn is_empty(&self, player: Player) -> bool {
        self.rows(player).into_iter().all(|row| !self.holds_seeds(row))
    }

    /// R10.
    pub(crate) fn winner(&self) -> Option<Player> {
        [Player::South, Player::North].into_iter().find(|&player| self.is_empty(!player))
    }

    /// The drawn column of the mover's, and the other way round.
    fn drawn(&self, column: usize) -> usize {
        match self.to_move {
            Player::South => column,
            Player::North => self.columns() - 1 - column,
        }
    }

    /// The action space, with a `None` for every action that is not legal.
    fn choices(&self) -> Vec<Option<Choice>> {
        let switches = self.rules.switches();
        let rows = self.rows(self.to_move);
        // R3, V6
        let start_rows = if switches.boaoaka {
            rows
        } else {
            let outermost = rows.iter().copied().find(|&row| self.holds_seeds(row));
            vec![outermost.unwrap_or(rows[0])]
        };
        // R4, V1, V2
        let directions = match switches.direction {
            DirectionChoice::Fixed => vec![Direction::Regular],
            DirectionChoice::PerMove | DirectionChoice::PerGame => {
                vec![Direction::Regular, Direction::Mirrored]
            }
        };
        let mut choices = Vec::new();
        for direction in directions {
            let bound = self.bound[self.to_move.index()];
            let free = bound.is_none() || bound == Some(direction);
            for &row in &start_rows {
                for column in 0..self.columns() {
                    let hole = (row, self.drawn(column));
                    let legal = free && self.seeds(hole) > 0;
                    choices.push(legal.then_some(Choice::Sow(hole, direction)));
                }
            }
        }
        // V5
        match switches.last_seed_steps {
            None => {}
            Some(LastSeedSteps::Straight) => choices.push(self.step(0)),
            Some(LastSeedSteps::Diagonal) => choices.extend([0, -1, 1].map(|by| self.step(by))),
        }
        if self.winner().is_some() {
            choices.fill(None);
        }
        choices
    }

    /// V5: the step of the last seed by one row inwards and `by` columns to the
    /// mover's right.
    fn step(&self, by: i64) -> Option<Choice> {
        let rows = self.rows(self.to_move);
        let mut occupied = Vec::new();
        for (depth, &row) in rows.iter().enumerate() {
            for column in 0..self.columns() {
                if self.seeds((row, self.drawn(column))) > 0 {
                    occupied.push((depth, column));
                }
            }
        }
        let &[(depth, column)] = occupied.as_slice() else { return None };
        let from = (rows[depth], self.drawn(column));
        let target = column as i64 + by;
        let exists = depth + 1 < rows.len() && (0..self.columns() as i64).contains(&target);
        (self.seeds(from) == 1 && exists)
            .then(|| Choice::Step(from, (rows[depth + 1], self.drawn(target as usize))))
    }

    /// The size of the action space.
    pub(crate) fn num_actions(&self) -> usize {
        self.choices().len()
    }

    pub(crate) fn legal(&self) -> Vec<i64> {
        let choices = self.choices();
        (0..choices.len()).filter(|&n| choices[n].is_some()).map(|n| n as i64).collect()
    }

    /// R4, V1: the hole after one of the mover's.
    pub(crate) fn after(&self, (row, column): Place, direction: Direction) -> Place {
        let (south, rows) = (self.to_move == Player::South, self.grid.len() / 2);
        let row_at = |depth| if south { 2 * rows - 1 - depth } else { depth };
        let depth = (0..rows).find(|&depth| row_at(depth) == row).unwrap();
        let (left, right) = (0, self.columns() - 1);
        let to_the_right = (depth % 2 == 0)
            == ((direction == Direction::Regular) == (self.to_move == Player::South));
        if to_the_right && column < right {
            (row, column + 1)
        } else if !to_the_right && column > left {
            (row, column - 1)
        } else if depth + 1 < rows {
            (row_at(depth + 1), column)
        } else {
            let first = if direction == Direction::Regular { left } else { right };
            (row_at(0), self.drawn(first))
        }
    }

    /// What the last seed of a lap, or a step, captures in the hole into which
    /// it has fallen, the holes nearest the mover first.
    fn captured(&self, landed: Place, stepped: bool) -> Vec<Place> {
        let switches = self.rules.switches();
        let was_empty = self.seeds(landed) == 1;
        if !switches.boaoaka && !stepped && was_empty != switches.capture_on_empty {
            return Vec::new(); // R8, V4
        }
        let (mine, theirs) = (self.rows(self.to_move), self.rows(!self.to_move));
        let in_inner_row = landed.0 == mine[mine.len() - 1];
        let column = theirs.iter().rev().map(|&row| (row, landed.1));
        let occupied: Vec<Place> = column.filter(|&hole| self.seeds(hole) > 0).collect();
        if switches.boaoaka {
            // V6
            let singles = occupied.iter().all(|&hole| self.seeds(hole) == 1);
            let captures = in_inner_row && !(was_empty && singles);
            return if captures { occupied } else { Vec::new() };
        }
        if stepped && !in_inner_row {
            return Vec::new(); // V5
        }
        if switches.fall_through {
            // V3
            let first = occupied.first().copied();
            return if in_inner_row { first.into_iter().collect() } else { Vec::new() };
        }
        // R8
        let innermost =
            |rows: &[usize]| rows.iter().rev().copied().find(|&row| self.holds_seeds(row)).unwrap();
        let facing = (innermost(&theirs), landed.1);
        let captures = landed.0 == innermost(&mine) && self.seeds(facing) > 0;
        if captures { vec![facing] } else { Vec::new() }
    }

    /// Plays a legal action and returns the laps.
    pub(crate) fn play(&mut self, action: i64) -> Vec<Lap> {
        let hole = |(row, column)| Hole { row, column };
        let mover = self.to_move;
        let bound = self.bound[mover.index()];
        let (mut lifted, mut step, direction);
        match self.choices()[action as usize].expect("a legal action") {
            Choice::Sow(start, chosen) => {
                (lifted, step, direction) = (start, None, chosen);
                if self.rules.switches().direction == DirectionChoice::PerGame {
                    // V2
                    self.bound[mover.index()] = Some(chosen);
                }
            }
            Choice::Step(from, to) => {
                (lifted, step, direction) = (from, Some(to), bound.unwrap_or(Direction::Regular));
            }
        }
        let mut laps = Vec::new();
        let mut taken = 0;
        loop {
            // R5, R6, R9, V5
            let seeds = self.lift(lifted) + taken;
            let stepped = step.is_some();
            let mut landed = lifted;
            for _ in 0..seeds {
                landed = step.take().unwrap_or_else(|| self.after(landed, direction));
                self.drop(landed, 1);
            }
            let was_empty = self.seeds(landed) == 1;
            let captured = self.captured(landed, stepped);
            taken = captured.iter().map(|&place| self.lift(place)).sum();
            laps.push(Lap {
                lifted: hole(lifted),
                seeds: seeds as usize,
                landed: hole(landed),
                captured: captured.into_iter().map(hole).collect(),
                taken: taken as usize,
            });
            // R7, R10, V4
            let over = was_empty && taken == 0
                || self.is_empty(!mover)
                || self.rules.switches().capture_on_empty && laps.len() == 10_000;
            if over {
                self.drop(landed, taken);
                break;
            }
            assert!(laps.len() < 1_000_000, "a move without an end");
            lifted = landed;
        }
        self.to_move = !mover;
        laps
    }
}
