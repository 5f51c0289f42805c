"""What one service measures of itself: instruments always, traces if they are asked for."""
